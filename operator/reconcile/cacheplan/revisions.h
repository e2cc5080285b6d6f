#pragma once

// The revisions of a CachePlan, kept as ControllerRevisions (docs/formats/rollout.md). Pure.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object_cache.h"
#include "operator/api/resources.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

inline constexpr const char* kPlanLabel = "optcache.io/cacheplan";  // of ControllerRevisions

// An index of ControllerRevisions by their CachePlan, "namespace/name".
inline constexpr const char* kByPlan = "plan";
kube::IndexFunction RevisionsByPlan();

struct Revision {
  std::string name;
  std::string uid;
  std::string owner_uid;  // of its controller; empty: it has none
  std::int64_t number = 0;
  kube::Json content;
  std::string change_cause{};  // of the CachePlan when it asked for it; empty: it had none

  std::string hash() const;
};

// By rising numbers; those that are being deleted are left out.
std::vector<Revision> RevisionsOf(const kube::ObjectKey& plan, const kube::ObjectCache& cache);

// Ten hexadecimal digits. `collisions` is how often another content had the name that a new one
// would have got.
std::string RevisionHash(const kube::Json& content, std::int64_t collisions);
std::string RevisionName(std::string_view plan, std::string_view hash);
// Of a name; empty: it is none of `plan`, as what follows is no hash.
std::string HashOfName(std::string_view plan, std::string_view name);

// Null: there is none of that hash.
const Revision* FindRevision(const std::vector<Revision>& revisions, std::string_view hash);

// What is done so that the content that the spec asks for has a revision, with the highest number.
struct RevisionChoice {
  std::string hash;
  std::int64_t collisions = 0;
  std::optional<Change> change;  // nullopt: it is there
};
RevisionChoice ChooseRevision(const kube::Json& plan, const kube::Json& content,
                              const std::vector<Revision>& revisions, std::int64_t collisions);

// Those with the lowest numbers that go: of the plan's own, beyond `kept` and without those in use.
std::vector<Removal> SurplusRevisions(const kube::Json& plan,
                                      const std::vector<Revision>& revisions,
                                      const std::set<std::string>& hashes_in_use,
                                      std::int64_t kept);

}  // namespace optcache::reconcile
