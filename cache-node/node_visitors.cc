// What a node of a cluster lets the pods of its machine do, message by message.

#include <variant>

#include "base/log.h"
#include "cache-node/access.h"
#include "cache-node/node.h"
#include "dataset/digest.h"

namespace optcache::node {

bool Node::Admits(net::Connection& from, wire::Message& message) {
  if (!cluster_) return true;
  const ClientId client = IdOf(from);
  Status status = cluster_->doorkeeper().MaySay(client, message);
  if (!status.ok()) {
    from.Close(std::move(status));
    return false;
  }
  if (cluster_->doorkeeper().Find(client) == nullptr) return true;
  if (const auto* attach = std::get_if<wire::StreamAttach>(&message)) OnUsed(attach->dataset_name);
  // Reads of a stream that this pod has not announced count as reads without an order: they change
  // nobody's plan.
  if (auto* get = std::get_if<wire::Get>(&message)) {
    if (!streams_.Reads(client, get->stream)) get->stream = 0;
  } else if (auto* put = std::get_if<wire::Put>(&message)) {
    if (!streams_.Reads(client, put->stream)) put->stream = 0;
  }
  return true;
}

// What the dataset's own namespace puts is believed; what others put only if the manifest, which
// they did not make, proves it.
bool Node::BelievesPut(ClientId from, const NodeDataset& dataset) {
  const Caller* caller = cluster_ ? cluster_->doorkeeper().Find(from) : nullptr;
  if (caller == nullptr || Owns(caller->name_space, dataset.name())) return true;
  if (!dataset.digests().empty()) return true;
  cluster_->refusals().Note(Refused::kPut, NameOf(*caller),
                            "the manifest has no digests by which others could be believed: "
                            "verify: Digest makes one that has");
  return false;
}

Status Node::CheckPut(ClientId from, const NodeDataset& dataset, const wire::Put& put,
                      const cache::SampleBytes& bytes) {
  const Caller* caller = cluster_ ? cluster_->doorkeeper().Find(from) : nullptr;
  if (caller == nullptr || Owns(caller->name_space, dataset.name())) return OkStatus();
  const auto& digests = dataset.digests();
  const bool proven =
      put.item.id < digests.size() && dataset::Sha256Of(bytes.bytes()) == digests[put.item.id];
  if (proven) return OkStatus();
  cluster_->refusals().Note(Refused::kPut, NameOf(*caller),
                            "the bytes are not those of the manifest's digest");
  return {Code::kDataLoss, "the bytes are not those of the manifest's digest"};
}

}  // namespace optcache::node
