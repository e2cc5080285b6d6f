#include "cache-node/trust/node_visitors.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "cache-node/trust/access.h"

namespace optcache::node {

Status NodeVisitors::Admit(ClientId client, wire::Message& message) {
  RETURN_IF_ERROR(door_.AuthorizeMessage(client, message));
  if (door_.Find(client) == nullptr) return OkStatus();
  if (auto* get = std::get_if<wire::Get>(&message)) {
    // Who reads the last pass of all items reads all their passes.
    PassNumber last = 0;
    for (const wire::ReadItem& item : get->items)
      last = std::max(last, item.pass);
    if (!streams_.Reads(client, get->stream, last)) get->stream = 0;
  } else if (auto* put = std::get_if<wire::Put>(&message)) {
    if (!streams_.Reads(client, put->stream, put->item.pass)) put->stream = 0;
  }
  return OkStatus();
}

PutTerms NodeVisitors::TermsOf(ClientId client, const std::string& dataset, bool has_digests) {
  const Caller* caller = door_.Find(client);
  if (caller == nullptr || Owns(caller->name_space, dataset)) return {};
  if (has_digests) return {.to_prove = true};
  const auto next = static_cast<BorrowerId>(borrowers_.size() + 1);
  return {.borrower = borrowers_.try_emplace(caller->name_space, next).first->second};
}

std::vector<BorrowerId> NodeVisitors::Uninvited(const coordination::DatasetState& dataset) const {
  std::vector<BorrowerId> borrowers;
  for (const auto& [name_space, borrower] : borrowers_) {
    if (!MayUse({.name_space = name_space}, dataset).ok()) borrowers.push_back(borrower);
  }
  return borrowers;
}

void NodeVisitors::Prove(ClientId client, std::shared_ptr<const cache::SampleBytes> bytes,
                         const dataset::Digest& digest, std::function<void(Status)> done) {
  const ByteCount charge = bytes->size() + kMaxProofBytes / kMaxProofs;
  if (unproven_bytes_ > 0 && unproven_bytes_ + charge > kMaxProofBytes) {
    return done({Code::kResourceExhausted, "too many samples wait for their proof"});
  }
  const Caller* caller = door_.Find(client);
  const std::string who = caller == nullptr ? std::string() : NameOf(*caller);
  const auto proven = std::make_shared<bool>(false);
  const Status begun = prover_.Run(
      [proven, bytes = std::move(bytes), digest] {
        *proven = dataset::Sha256Of(bytes->bytes()) == digest;
      },
      [this, proven, who, charge, done] {
        unproven_bytes_ -= charge;
        if (*proven) return done(OkStatus());
        Status refuted(Code::kDataLoss, "the bytes are not those of the manifest's digest");
        refusal_counters_.Note(Refused::kPut, who, refuted.message());
        done(std::move(refuted));
      });
  if (!begun.ok()) return done(begun);
  unproven_bytes_ += charge;
}

}  // namespace optcache::node
