#pragma once

// Whether a Dataset's source is reached, once it was listed: what sidecars that read it say.

#include <optional>
#include <string>

#include "api/dataset.h"
#include "kube/conditions.h"
#include "operator/reconcile/dataset/observed.h"

namespace optcache::reconcile {

// Silent to a reader for this long: it is reported.
inline constexpr double kSilentSeconds = 10;
// Silent to no reader for this long: it is over.
inline constexpr double kQuietSeconds = 30;

struct SourceReach {
  kube::ConditionStatus status = kube::ConditionStatus::kTrue;
  std::string reason;  // "Listed", "StoreSilent", "StoreAnswers", "NotAsked"
  std::string message;
};

// By what sidecars say, not by the listing.
bool IsOfSidecars(std::string_view reason);

// `before` is the condition as it stands, `store` what sidecars say now; null: nobody knows, and
// what they said before stays.
SourceReach JudgeSource(const api::DatasetSpec& spec, const kube::Condition& before,
                        const coordination::StoreStatus* store);

// What the condition Stale says, of an object that is not the one that was indexed; nullopt: no
// sidecar has met one. `before` and `store` as above: what was said once stays until the source is
// listed again.
std::optional<std::string> JudgeChange(const kube::Condition& before,
                                       const coordination::StoreStatus* store);

}  // namespace optcache::reconcile
