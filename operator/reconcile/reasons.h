#pragma once

// All reasons that the operator gives in conditions and Events. docs/user/troubleshooting.md says
// of each what it means and what to do; a test compares the two.

#include <algorithm>
#include <array>
#include <string_view>

namespace optcache::reconcile {

// What an index Job may say of itself, docs/kubernetes.md.
inline constexpr auto kIndexReasons =
    std::to_array<std::string_view>({"SourceUnreachable", "SourceForbidden", "SourceInvalid",
                                     "SourceChanged", "ManifestRefused", "NodesUnreachable"});

inline constexpr auto kReasons = std::to_array<std::string_view>({
    // Dataset: Indexed, SourceReachable, Placed, ManifestLost, Degraded, Invalid, Ready.
    "Indexed",
    "Indexing",
    "JobPending",
    "IndexFailed",
    "SourceUnsupported",
    "Listed",
    "NotTried",
    "StoreSilent",
    "StoreAnswers",
    "NotAsked",
    "NotIndexed",
    "NoNodes",
    "NoMatchingNode",
    "NoMemory",
    "TooManyDatasets",
    "Placed",
    "NoHolder",
    "Held",
    "AsWanted",
    "CapacityNotGranted",
    "OrderUnknown",
    "PlanInvalid",
    "PlansDiffer",
    "Invalid",
    "Serving",
    // CachePlan: Available, Progressing, Degraded.
    "NoDataset",
    "AnotherPlan",
    "NotPlaced",
    "Waiting",
    "NodesChange",
    "Followed",
    "Complete",
    "CompleteUnobserved",
    "Preparing",
    "PredictedWorse",
    "EpochAwaited",
    "Partitioned",
    "Paused",
    "Observing",
    "GoingBack",
    "ProgressDeadlineExceeded",
    "DigestMismatch",
    "PrepareFailed",
    "BelowPredicted",
    "WorseThanPrevious",
    "NodesDiffer",
    "NodesMissing",
    "SamplerDiffers",
    // Warmup: Complete, Failed; and Events.
    "Warming",
    "Warmed",
    "NothingKept",
    "WarmupFailed",
    // CachePlan: Degraded, and an Event.
    "RolloutStopped",
    // Events alone.
    "ListChanged",
    "RolloutStarted",
    "NodesNotCompared",
    "RolloutComplete",
    "RolloutUnobserved",
    "RevisionLost",
    "RolledBack",
    "ApplyFailed",
    "NotInjected",
    "HeadspaceMeasured",
    "HeadspaceNotMeasured",
    "Saved",
    "AuthorityCreated",
    "AuthorityRenewalBegun",
    "AuthorityRenewed",
    "AuthorityReplaced",
    "CertificateIssued",
});

constexpr bool IsIndexReason(std::string_view reason) {
  return std::ranges::find(kIndexReasons, reason) != kIndexReasons.end();
}

// Of a condition or an Event.
constexpr bool IsKnownReason(std::string_view reason) {
  return IsIndexReason(reason) || std::ranges::find(kReasons, reason) != kReasons.end();
}

}  // namespace optcache::reconcile
