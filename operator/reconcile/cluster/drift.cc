#include "operator/reconcile/cluster/drift.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace optcache::reconcile {
namespace {

const std::string& RevisionFor(const std::string& node, const coordination::DatasetSpec& spec) {
  const bool goes_over = spec.update && std::ranges::binary_search(spec.update->nodes, node);
  return goes_over ? spec.update->revision.name : spec.revision;
}

}  // namespace

const Drift::Differing* Drift::Before(const std::string& dataset, const std::string& node) const {
  const auto nodes = differ_.find(dataset);
  if (nodes == differ_.end()) return nullptr;
  const auto found = nodes->second.find(node);
  return found == nodes->second.end() ? nullptr : &found->second;
}

void Drift::Look(const std::vector<coordination::DatasetSpec>& specs,
                 const coordination::ClusterStatus& status, MonotonicTime now) {
  now_ = now;
  std::map<std::string, Nodes> differ;
  for (const coordination::DatasetSpec& spec : specs) {
    const auto known =
        std::ranges::find(status.datasets, spec.name, &coordination::DatasetStatus::name);
    if (known == status.datasets.end() || !spec.placed || spec.revision.empty()) continue;
    std::map<std::string_view, std::string_view> follows;
    for (const coordination::NodeShare& share : known->nodes)
      follows.emplace(share.name, share.revision);
    for (const std::string& node : *spec.placed) {
      const auto said = follows.find(node);
      const std::string_view revision = said == follows.end() ? std::string_view() : said->second;
      const std::string& wanted = RevisionFor(node, spec);
      if (revision == wanted) continue;
      Differing differing{.wanted = wanted, .follows_any = !revision.empty(), .since = now};
      if (const Differing* const before = Before(spec.name, node)) {
        if (before->wanted == wanted && before->follows_any == differing.follows_any)
          differing.since = before->since;
      }
      differ[spec.name].emplace(node, std::move(differing));
    }
  }
  differ_ = std::move(differ);
}

std::vector<std::string> Drift::Of(const std::string& dataset) const {
  std::vector<std::string> names;
  const auto found = differ_.find(dataset);
  if (found == differ_.end()) return names;
  for (const auto& [name, differing] : found->second) {
    const Duration grace = differing.follows_any ? kDriftAfter : kFirstPlanWithin;
    if (now_ - differing.since > grace) names.push_back(name);
  }
  return names;
}

}  // namespace optcache::reconcile
