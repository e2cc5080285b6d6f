#include "operator/reconcile/apply.h"

#include <utility>

namespace optcache::reconcile {
namespace {

constexpr Duration kNamespaceLookAgain = std::chrono::minutes(1);

// Errors that their user can do something about; others pass by themselves.
bool IsForPeople(const kube::ApiError& error) {
  return !error.transient() && !error.not_found() && !error.conflict() &&
         !error.namespace_terminating && error.status.code() != Code::kCancelled;
}

void Finish(const kube::ApiResult<kube::ApplyOutcome>& outcome, kube::EventRecorder& events,
            const kube::ObjectReference& regarding, const std::optional<Duration>& requeue,
            const kube::ReconcileDone& done) {
  if (outcome) return done({.status = OkStatus(), .requeue_after = requeue});
  const kube::ApiError& error = outcome.error();
  // The namespace takes everything along that we could have wanted there, and nobody tells when
  // there is one of that name (again).
  if (error.namespace_terminating || error.namespace_missing)
    return done({.status = OkStatus(), .requeue_after = kNamespaceLookAgain});
  if (IsForPeople(error)) {
    events.Record(regarding, {.type = kube::EventType::kWarning,
                              .reason = "ApplyFailed",
                              .action = "Apply",
                              .note = std::string(error.status.message())});
  }
  done({.status = error.status});
}

}  // namespace

void DecisionRunner::Run(Decision decision, const kube::ObjectReference& regarding,
                         kube::ReconcileDone done) {
  std::vector<kube::ApplyItem> applies;
  for (Change& change : decision.applies) {
    auto present = present_(change.resource, kube::KeyOf(change.object));
    applies.push_back({.resource = change.resource,
                       .object = std::move(change.object),
                       .subresource = std::move(change.subresource),
                       .present = std::move(present),
                       .create_only = change.create_only,
                       .resource_version = std::move(change.resource_version)});
  }
  std::vector<kube::DeleteItem> deletes;
  for (Removal& removal : decision.deletes) {
    deletes.push_back({.resource = removal.resource,
                       .key = std::move(removal.key),
                       .options = {.uid = std::move(removal.uid)}});
  }
  auto finish = [&events = events_, regarding, done = std::move(done),
                 requeue =
                     decision.requeue_after](const kube::ApiResult<kube::ApplyOutcome>& outcome) {
    Finish(outcome, events, regarding, requeue, done);
  };
  // A step that could not be written, as another was written before, has not happened.
  applier_.Run(std::move(applies), {},
               [&applier = applier_, &events = events_, regarding,
                said = std::move(decision.events), deletes = std::move(deletes),
                finish = std::move(finish)](const kube::ApiResult<kube::ApplyOutcome>& outcome) {
                 if (!outcome) return finish(outcome);
                 for (const kube::EventText& event : said)
                   events.Record(regarding, event);
                 applier.Run({}, deletes, finish);
               });
}

}  // namespace optcache::reconcile
