#include "operator/webhook/affinity.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace optcache::webhook {
namespace {

constexpr int kWeight = 100;  // the most there is
constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

Json OnOneOf(const std::vector<std::string>& hostnames) {
  return {{"key", "kubernetes.io/hostname"}, {"operator", "In"}, {"values", hostnames}};
}

std::vector<std::string> Sorted(std::vector<std::string> hostnames) {
  std::ranges::sort(hostnames);
  const auto rest = std::ranges::unique(hostnames);
  hostnames.erase(rest.begin(), rest.end());
  return hostnames;
}

// Without conditions it matches no machine at all.
bool IsEmptyTerm(const Json& term) {
  return Items(term, "matchExpressions").empty() && Items(term, "matchFields").empty();
}

// The terms of a selector are alternatives: each of them needs the new condition, but those that
// match nothing, which would match with it.
void Require(Json& node_affinity, const std::vector<std::string>& hostnames) {
  Json terms = Items(Member(node_affinity, kRequired), "nodeSelectorTerms");
  for (Json& term : terms) {
    if (!term.is_object() || IsEmptyTerm(term)) continue;
    Json& expressions = term["matchExpressions"];
    if (!expressions.is_array()) expressions = Json::array();
    expressions.push_back(OnOneOf(hostnames));
  }
  if (terms.empty()) terms.push_back({{"matchExpressions", Json::array({OnOneOf(hostnames)})}});
  node_affinity[kRequired] = {{"nodeSelectorTerms", std::move(terms)}};
}

void Prefer(Json& node_affinity, const std::vector<std::string>& hostnames) {
  Json terms = Items(node_affinity, kPreferred);
  const Json preference = {{"matchExpressions", Json::array({OnOneOf(hostnames)})}};
  terms.push_back({{"weight", kWeight}, {"preference", preference}});
  node_affinity[kPreferred] = std::move(terms);
}

// The machines that hold all that is required; empty if nothing is.
Result<std::vector<std::string>> CommonMachines(const std::vector<ChosenDataset>& datasets,
                                                std::vector<std::string>& warnings) {
  std::vector<std::string> common;
  std::string names;
  for (const ChosenDataset& dataset : datasets) {
    const DatasetFacts& facts = *dataset.facts;
    if (facts.scheduling != api::SchedulingPreference::kRequired) continue;
    if (facts.hostnames.empty()) {
      warnings.push_back(fmt::format(
          "Dataset {} is on no machine yet: the pod may be scheduled where it will not be",
          facts.QualifiedName()));
      continue;
    }
    std::vector<std::string> held = Sorted(facts.hostnames);
    if (!names.empty()) {
      std::vector<std::string> both;
      std::ranges::set_intersection(common, held, std::back_inserter(both));
      held = std::move(both);
    }
    common = std::move(held);
    names += (names.empty() ? "" : " and ") + facts.QualifiedName();
    if (common.empty()) {
      return Error(Code::kNotFound,
                   fmt::format("no machine holds Datasets {}, and all of them are required: set "
                               "placement.schedulingPreference of one to Preferred",
                               names));
    }
  }
  if (common.size() > kMaxRequiredMachines) common.resize(kMaxRequiredMachines);
  return common;
}

}  // namespace

Result<Affinity> AddAffinity(const Json& pod, const std::vector<ChosenDataset>& datasets) {
  Affinity affinity;
  const Json& spec = Member(pod, "spec");
  if (!TextIn(spec, "nodeName").empty()) return affinity;  // its machine is chosen
  Json node_affinity = Member(Member(spec, "affinity"), "nodeAffinity");
  if (!node_affinity.is_object()) node_affinity = Json::object();
  const Json before = node_affinity;
  ASSIGN_OR_RETURN(const std::vector<std::string> required,
                   CommonMachines(datasets, affinity.warnings));
  if (!required.empty()) Require(node_affinity, required);
  for (const ChosenDataset& dataset : datasets) {
    const std::vector<std::string> hostnames = Sorted(dataset.facts->hostnames);
    const bool preferred = dataset.facts->scheduling == api::SchedulingPreference::kPreferred;
    if (preferred && !hostnames.empty() && hostnames.size() <= kMaxPreferredMachines)
      Prefer(node_affinity, hostnames);
  }
  if (node_affinity == before) return affinity;
  const Json& present = Member(spec, "affinity");
  affinity.value = present.is_object() ? present : Json::object();
  affinity.value["nodeAffinity"] = std::move(node_affinity);
  return affinity;
}

}  // namespace optcache::webhook
