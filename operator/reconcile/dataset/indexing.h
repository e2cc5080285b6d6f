#pragma once

// Whether a Dataset is indexed, and what its index Job shall do next. The Job's own end is the
// clock of repetitions: one that has failed stays kJobKeptSeconds, is then removed by Kubernetes,
// and is made again. With spec.index.interval a Dataset that is indexed is so again in each period;
// until that has ended or failed, its conditions stay as they are.

#include <optional>
#include <string>
#include <vector>

#include "api/dataset.h"
#include "operator/reconcile/dataset/index_job.h"
#include "operator/reconcile/dataset/observed.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

enum class SourceState { kUnknown, kReachable, kUnreachable };

struct Indexing {
  bool done = false;    // the manifest is of the present spec
  bool failed = false;  // not only under way
  std::string reason;   // "Indexed", "Indexing", "SourceUnreachable"
  std::string message;
  SourceState source = SourceState::kUnknown;
  IndexMark mark;                     // what it shall be, or is
  std::optional<IndexResult> result;  // a manifest that the status does not have yet
  std::vector<Change> applies;
  std::vector<Removal> deletes;
  std::optional<Duration> requeue_after;
};

// No member has reported the manifest for this long: it is lost, and made again.
inline constexpr double kManifestLostSeconds = 120;

bool IsManifestLost(const Observed& observed, const api::DatasetStatus& status);

Indexing DecideIndexing(const Observed& observed, const api::DatasetSpec& spec,
                        const api::DatasetStatus& status, const ReconcileSettings& settings);

}  // namespace optcache::reconcile
