#include "operator/webhook/dataset_choice.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::webhook {
namespace {

std::unexpected<Refusal> RefuseChoice(Reason reason, std::string message) {
  return std::unexpected(Refusal{.reason = reason, .message = std::move(message)});
}

// The pod's own volume of that claim, or an earlier Dataset's; empty if there is none.
std::string VolumeOf(const Json& pod, const std::string& claim,
                     const std::vector<ChosenDataset>& earlier) {
  for (const ChosenDataset& dataset : earlier) {
    if (dataset.claim == claim) return dataset.claim_volume;
  }
  for (const Json& volume : Items(Member(pod, "spec"), "volumes")) {
    if (TextIn(Member(volume, "persistentVolumeClaim"), "claimName") == claim)
      return TextIn(volume, "name");
  }
  return "";
}

std::expected<ChosenDataset, Refusal> Choose(const DatasetFacts& facts,
                                             std::string_view name_space) {
  if (!facts.understood) {
    return RefuseChoice(
        Reason::kUnreadableSource,
        fmt::format("Dataset {} cannot be understood by this version of optcache: its condition "
                    "Ready says why",
                    facts.QualifiedName()));
  }
  ChosenDataset chosen{.facts = &facts, .secret = facts.secret, .claim = facts.claim};
  if (facts.name_space != name_space) {
    const auto grant = std::ranges::find(facts.access, name_space, &Grant::name_space);
    if (grant == facts.access.end()) {
      return RefuseChoice(
          Reason::kNotPermitted,
          fmt::format("namespace {} may not use Dataset {}: its spec.access has no entry "
                      "for {}",
                      name_space, facts.QualifiedName(), name_space));
    }
    chosen.secret = grant->secret;
    if (!facts.claim.empty()) {
      if (grant->claim.empty()) {
        return RefuseChoice(
            Reason::kUnreadableSource,
            fmt::format("Dataset {} is a claim of namespace {}: its spec.access needs a "
                        "claimName for {}",
                        facts.QualifiedName(), facts.name_space, name_space));
      }
      chosen.claim = grant->claim;
    }
  }
  if (facts.url.empty() && chosen.claim.empty()) {
    return RefuseChoice(Reason::kUnreadableSource,
                        fmt::format("this version of optcache cannot read the source of Dataset {}",
                                    facts.QualifiedName()));
  }
  return chosen;
}

}  // namespace

std::expected<std::vector<ChosenDataset>, Refusal> ChooseDatasets(const Json& pod,
                                                                  const InjectionRequest& request,
                                                                  std::string_view name_space,
                                                                  const DatasetView& datasets) {
  std::vector<ChosenDataset> chosen;
  for (const DatasetName& name : request.datasets) {
    const DatasetFacts* const facts = datasets.Find(name.name_space, name.name);
    if (facts == nullptr) {
      return RefuseChoice(
          Reason::kUnknownDataset,
          fmt::format("Dataset {} does not exist: create it, or let the pod run without "
                      "by the annotation optcache.io/optional: \"true\"",
                      name.QualifiedName()));
    }
    auto dataset = Choose(*facts, name_space);
    if (!dataset) return std::unexpected(std::move(dataset).error());
    if (!dataset->claim.empty()) {
      dataset->claim_volume = VolumeOf(pod, dataset->claim, chosen);
      dataset->adds_claim_volume = dataset->claim_volume.empty();
      if (dataset->adds_claim_volume)
        dataset->claim_volume = fmt::format("optcache-claim-{}", chosen.size());
    }
    chosen.push_back(*std::move(dataset));
  }
  return chosen;
}

}  // namespace optcache::webhook
