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

// What the Dataset names is of its own namespace.
std::expected<ChosenDataset, Refusal> ChooseOwn(const DatasetFacts& facts) {
  return ChosenDataset{.facts = &facts,
                       .secret = facts.secret,
                       .claim = facts.claim,
                       .web_identity = !facts.url_by_identity.empty()};
}

// What the pod's owner is to know of what it lends, and does not.
std::vector<std::string> WarningsOf(const DatasetFacts& facts, const Loan& loan) {
  std::vector<std::string> warnings;
  const std::string name = facts.QualifiedName();
  const bool owner_has_keys = !facts.secret.empty() || !facts.url_by_identity.empty();
  if (owner_has_keys && loan.secret.empty() && !loan.pod_identity) {
    warnings.push_back(fmt::format(
        "Dataset {} is read without keys, its own namespace has some: name a Secret of yours by "
        "the annotation optcache.io/keys: \"{}=SECRET\"{}",
        name, name, facts.url_by_identity.empty() ? "" : ", or see optcache.io/pod-identity"));
  }
  const auto warn_of_needless = [&](const char* annotation, const char* source) {
    warnings.push_back(
        fmt::format("annotation optcache.io/{} does nothing for Dataset {}: its "
                    "source is {}",
                    annotation, name, source));
  };
  const bool of_claim = !facts.claim.empty();
  if (of_claim && !loan.secret.empty()) warn_of_needless("keys", "a claim");
  if (!of_claim && !loan.claim.empty()) warn_of_needless("claims", "no claim");
  if (loan.pod_identity && !facts.url.starts_with("s3://"))
    warn_of_needless("pod-identity", "no bucket");
  return warnings;
}

// For a pod of another namespace the Dataset says where the samples are, and no more: the pod says
// what of its namespace goes there.
std::expected<ChosenDataset, Refusal> ChooseAsBorrower(const DatasetFacts& facts, const Loan& loan,
                                                       std::string_view name_space) {
  const std::string name = facts.QualifiedName();
  if (std::ranges::find(facts.access, name_space) == facts.access.end()) {
    return RefuseChoice(
        Reason::kNotPermitted,
        fmt::format("namespace {} may not use Dataset {}: its spec.access has no entry for {}",
                    name_space, name, name_space));
  }
  const bool of_claim = !facts.claim.empty();
  if (of_claim && loan.claim.empty()) {
    return RefuseChoice(
        Reason::kUnreadableSource,
        fmt::format("Dataset {} is a claim of namespace {}: name a claim of {} with the same files "
                    "by the annotation optcache.io/claims: \"{}=CLAIM\"",
                    name, facts.name_space, name_space, name));
  }
  return ChosenDataset{.facts = &facts,
                       .secret = of_claim ? "" : loan.secret,
                       .claim = of_claim ? loan.claim : "",
                       .web_identity = loan.pod_identity && !facts.url_by_identity.empty(),
                       .ambient_keys = loan.pod_identity,
                       .warnings = WarningsOf(facts, loan)};
}

std::expected<ChosenDataset, Refusal> Choose(const DatasetFacts& facts,
                                             const InjectionRequest& request,
                                             std::string_view name_space) {
  if (!facts.understood) {
    return RefuseChoice(
        Reason::kUnreadableSource,
        fmt::format("Dataset {} cannot be understood by this version of optcache: its condition "
                    "Ready says why",
                    facts.QualifiedName()));
  }
  const auto loan = request.loans.find(facts.QualifiedName());
  auto chosen = facts.name_space == name_space
                    ? ChooseOwn(facts)
                    : ChooseAsBorrower(facts, loan == request.loans.end() ? Loan{} : loan->second,
                                       name_space);
  if (chosen && facts.url.empty() && chosen->claim.empty()) {
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
    auto dataset = Choose(*facts, request, name_space);
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
