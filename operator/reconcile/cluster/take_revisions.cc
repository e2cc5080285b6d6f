#include "operator/reconcile/cluster/take_revisions.h"

#include <utility>

#include "operator/reconcile/cacheplan/revisions.h"
#include "operator/reconcile/cacheplan/rollout_status.h"

namespace optcache::reconcile {

void TakeRevisions(const PlanChoice& choice, const kube::ObjectCache& plans,
                   const kube::ObjectCache& revisions, const RevisionInForce& before,
                   ClusterDataset& dataset) {
  dataset.plan = choice.spec;
  const kube::Json content = api::RevisionContent(choice.spec);
  dataset.revision = RevisionHash(content, 0);
  if (choice.chosen == nullptr) return;
  const kube::ObjectKey key{.ns = dataset.ns, .name = choice.chosen->name};
  const auto plan = plans.Find(key);
  if (plan == nullptr) return;
  if (choice.fault.empty()) dataset.question = QuestionOf(*plan);
  if (dataset.question && IsAnswered(*plan, *dataset.question)) dataset.question.reset();
  coordination::RolloutState rollout = RolloutOf(*plan);
  for (const Revision& revision : RevisionsOf(key, revisions)) {
    if (auto spec = api::ParseRevisionContent(revision.content))
      dataset.revisions.emplace(revision.hash(), *std::move(spec));
  }
  if (!before.hash.empty()) dataset.revisions.try_emplace(before.hash, before.content);
  // What was written just now may not be seen yet.
  const std::int64_t collisions = kube::NumberAt(*plan, "/status/collisionCount").value_or(0);
  const std::string wanted = RevisionHash(content, collisions);
  if (choice.fault.empty()) dataset.revisions.try_emplace(wanted, choice.spec);
  const auto current = dataset.revisions.find(rollout.current);
  if (rollout.current.empty() || current == dataset.revisions.end()) return;
  dataset.plan.retention = current->second.retention;
  dataset.plan.objective = current->second.objective;
  dataset.plan.jobs = current->second.jobs;
  dataset.revision = rollout.current;
  dataset.rollout = std::move(rollout);
}

}  // namespace optcache::reconcile
