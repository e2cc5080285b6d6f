// Names revisions by the hash of their content, and decides which ControllerRevision is written or
// removed.
//
// Equal content is one revision: to return to it raises its number and makes no new object. If
// another content has the name already, a count of collisions enters the hash until the name is
// free, as Kubernetes does for Deployments. The history keeps what the rollout or a node still
// uses, whatever its limit.

#include "operator/reconcile/cacheplan/revisions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dataset/digest.h"
#include "operator/api/resources.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

constexpr std::size_t kHashDigits = 10;
constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kChangeCause = "kubernetes.io/change-cause";  // as kubectl reads it

std::string CauseOf(const Json& object) {
  return kube::AnnotationOf(object, kChangeCause).value_or("");
}

Change WriteRevision(const Json& plan, const std::string& name, std::int64_t number,
                     const Json& content, bool is_new) {
  Json object =
      kube::MakeObject(kube::kControllerRevisions, {.ns = kube::KeyOf(plan).ns, .name = name});
  object["metadata"]["labels"] = {{kManagedByLabel, kManagedBy},
                                  {kPlanLabel, kube::KeyOf(plan).name}};
  object["metadata"]["ownerReferences"] =
      Json::array({kube::OwnerReference(api::kCachePlans, plan)});
  if (const std::string cause = CauseOf(plan); !cause.empty())
    object["metadata"]["annotations"] = {{kChangeCause, cause}};
  object["data"] = {{"spec", content}};
  object["revision"] = number;
  return {
      .resource = kube::kControllerRevisions, .object = std::move(object), .create_only = is_new};
}

// Somebody may have made another one of equal content by hand. The same one is found each time:
// that which is in force or rolled out, else the newest.
const Revision* FindContent(const Json& plan, const Json& content,
                            const std::vector<Revision>& revisions) {
  const std::string current = kube::TextAt(plan, "/status/currentRevision");
  const std::string update = kube::TextAt(plan, "/status/updateRevision");
  const Revision* found = nullptr;
  for (const Revision& revision : revisions) {
    if (revision.content != content) continue;
    if (revision.name == current) return &revision;
    if (found == nullptr || found->name != update) found = &revision;
  }
  return found;
}

}  // namespace

kube::IndexFunction RevisionsByPlan() {
  return [](const Json& revision) -> std::vector<std::string> {
    const auto plan = kube::LabelOf(revision, kPlanLabel);
    if (!plan) return {};
    return {kube::ObjectKey{.ns = kube::KeyOf(revision).ns, .name = *plan}.ToString()};
  };
}

std::string Revision::hash() const {
  return HashOfName(std::string_view(name).substr(0, name.rfind('-')), name);
}

std::vector<Revision> RevisionsOf(const kube::ObjectKey& plan, const kube::ObjectCache& cache) {
  std::vector<Revision> revisions;
  for (const auto& entry : cache.Lookup(kByPlan, plan.ToString())) {
    const std::string name = kube::KeyOf(*entry).name;
    if (kube::IsBeingDeleted(*entry) || HashOfName(plan.name, name).empty()) continue;
    const auto owner = kube::ControllerOf(*entry);
    revisions.push_back({.name = name,
                         .uid = kube::UidOf(*entry),
                         .owner_uid = owner ? owner->uid : "",
                         .number = kube::NumberAt(*entry, "/revision").value_or(0),
                         .content = kube::Find(*entry, "/data/spec"),
                         .change_cause = CauseOf(*entry)});
  }
  std::ranges::sort(revisions, {}, [](const Revision& revision) {
    return std::pair(revision.number, revision.name);
  });
  return revisions;
}

std::string RevisionHash(const Json& content, std::int64_t collisions) {
  std::string text = kube::ToText(content);
  if (collisions > 0) text += fmt::format("\n{}", collisions);
  return dataset::ToHex(dataset::Sha256Of(AsBytes(text))).substr(0, kHashDigits);
}

std::string RevisionName(std::string_view plan, std::string_view hash) {
  return fmt::format("{}-{}", plan, hash);
}

std::string HashOfName(std::string_view plan, std::string_view name) {
  if (name.size() <= plan.size() + 1 || !name.starts_with(plan) || name[plan.size()] != '-')
    return {};
  const std::string_view hash = name.substr(plan.size() + 1);
  const bool is_hash =
      hash.size() == kHashDigits && hash.find_first_not_of(kHexDigits) == std::string_view::npos;
  return is_hash ? std::string(hash) : "";
}

const Revision* FindRevision(const std::vector<Revision>& revisions, std::string_view hash) {
  const auto found = std::ranges::find_if(
      revisions, [&](const Revision& revision) { return revision.hash() == hash; });
  return found == revisions.end() ? nullptr : &*found;
}

RevisionChoice ChooseRevision(const Json& plan, const Json& content,
                              const std::vector<Revision>& revisions, std::int64_t collisions) {
  const std::int64_t highest = revisions.empty() ? 0 : revisions.back().number;
  const std::string ours = kube::UidOf(plan);
  const std::string& name = kube::KeyOf(plan).name;
  if (const Revision* const same = FindContent(plan, content, revisions)) {
    RevisionChoice choice{.hash = same->hash(), .collisions = collisions};
    const std::string cause = CauseOf(plan);
    const bool says_why = !cause.empty() && cause != same->change_cause;
    // One that a CachePlan of this name left behind becomes ours.
    if (same->number != highest || same->owner_uid != ours || says_why) {
      const std::int64_t number = same->number == highest ? highest : highest + 1;
      choice.change = WriteRevision(plan, same->name, number, content, /*is_new=*/false);
    }
    return choice;
  }
  std::string hash = RevisionHash(content, collisions);
  while (FindRevision(revisions, hash) != nullptr)
    hash = RevisionHash(content, ++collisions);
  return {.hash = hash,
          .collisions = collisions,
          .change = WriteRevision(plan, RevisionName(name, hash), highest + 1, content,
                                  /*is_new=*/true)};
}

std::vector<Removal> SurplusRevisions(const Json& plan, const std::vector<Revision>& revisions,
                                      const std::set<std::string>& hashes_in_use,
                                      std::int64_t kept) {
  std::vector<const Revision*> unused;
  for (const Revision& revision : revisions) {
    if (revision.owner_uid == kube::UidOf(plan) && !hashes_in_use.contains(revision.hash()))
      unused.push_back(&revision);
  }
  std::vector<Removal> removals;
  for (std::size_t i = 0; i + static_cast<std::size_t>(kept) < unused.size(); ++i) {
    removals.push_back({.resource = kube::kControllerRevisions,
                        .key = {.ns = kube::KeyOf(plan).ns, .name = unused[i]->name},
                        .uid = unused[i]->uid});
  }
  return removals;
}

}  // namespace optcache::reconcile
