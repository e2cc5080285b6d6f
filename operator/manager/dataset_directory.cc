#include "operator/manager/dataset_directory.h"

#include <utility>

namespace optcache::manager {
namespace {

webhook::DatasetFacts ToFacts(const kube::ObjectKey& key, const KnownDataset& known) {
  webhook::DatasetFacts facts{.name_space = key.ns,
                              .name = key.name,
                              .access = known.spec.access,
                              .requests_per_second = known.spec.limits.requests_per_second,
                              .bytes_per_second = known.spec.limits.bytes_per_second,
                              .patience_seconds = known.spec.patience_seconds,
                              .price = known.spec.price,
                              .scheduling = known.spec.placement.scheduling,
                              .indexed = !known.status.manifest_digest.empty(),
                              .samples = known.status.samples,
                              .largest_sample = known.status.largest_sample};
  if (const auto* http = std::get_if<api::HttpSource>(&known.spec.source)) {
    facts.url = http->base_url;
    facts.secret = http->secret;
  } else if (const auto* s3 = std::get_if<api::S3Source>(&known.spec.source)) {
    facts.url = api::AddressWithoutRole(*s3);
    facts.secret = s3->secret;
    if (s3->web_identity()) facts.url_by_identity = api::AddressOf(*s3, webhook::kStsToken);
  } else if (const auto* claim = std::get_if<api::ClaimSource>(&known.spec.source)) {
    facts.claim = claim->claim;
    facts.claim_folder = claim->path;
  }
  return facts;
}

}  // namespace

DatasetDirectory::DatasetDirectory(kube::Informer& datasets, kube::Informer& nodes)
    : datasets_(datasets), nodes_(nodes) {
  datasets_.OnChange([this](const kube::ObjectChange& change) { OnChange(change); });
}

void DatasetDirectory::OnChange(const kube::ObjectChange& change) {
  all_.erase(change.key);
  facts_.erase(change.key);
  not_understood_.erase(change.key);
  if (change.after == nullptr || kube::IsBeingDeleted(*change.after)) return;
  Result<api::DatasetSpec> spec = api::ParseDatasetSpec(*change.after);
  if (!spec) {  // its reconciliation says so
    not_understood_.insert(change.key);
    return;
  }
  all_.emplace(change.key,
               KnownDataset{.created = kube::TextAt(*change.after, "/metadata/creationTimestamp"),
                            .uid = kube::UidOf(*change.after),
                            .spec = *std::move(spec),
                            .status = api::ParseDatasetStatus(*change.after)});
}

const webhook::DatasetFacts* DatasetDirectory::Find(std::string_view name_space,
                                                    std::string_view name) const {
  const kube::ObjectKey key{.ns = std::string(name_space), .name = std::string(name)};
  if (not_understood_.contains(key)) {
    facts_[key] = {.name_space = key.ns, .name = key.name, .understood = false};
    return &facts_[key];
  }
  const auto known = all_.find(key);
  if (known == all_.end()) return nullptr;
  webhook::DatasetFacts& facts = facts_[key];
  facts = ToFacts(key, known->second);
  // Who must run where it lies may run wherever it is to lie; who only should, where bytes are.
  const bool required =
      known->second.spec.placement.scheduling == api::SchedulingPreference::kRequired;
  for (const api::NodeBytes& holder : known->second.status.nodes) {
    if (holder.bytes == 0 && !required) continue;
    const auto node = nodes_.cache().Find({.ns = "", .name = holder.name});
    const auto hostname =
        node == nullptr ? std::nullopt : kube::LabelOf(*node, "kubernetes.io/hostname");
    facts.hostnames.push_back(hostname.value_or(holder.name));
  }
  return &facts;
}

}  // namespace optcache::manager
