#include <cstdint>
#include <limits>

#include "base/whole_number.h"
#include "config/internal/resources.h"
#include "dataset/capacity_goal.h"

namespace optcache::config::internal {
namespace {

constexpr std::int64_t kMaxWorldSize = 65536;
constexpr std::uint32_t kMaxNodes = 100000;
constexpr std::int64_t kMaxEpochs = 1000000000;

void ReadJobs(YamlMap& spec, std::vector<Job>& jobs) {
  spec.ForEach("jobs", [&](YamlMap& item) {
    Job& job = jobs.emplace_back();
    item.NeedSubdomain("name", job.name);
    item.In("sampler", [&](YamlMap& sampler) {
      Sampler& out = job.sampler;
      sampler.Read("kind", out.kind);
      if (out.kind != "TorchDistributed" && out.kind != "TorchRandom") {
        sampler.Fail("kind",
                     "'" + out.kind + "' is not known, allowed: TorchDistributed, TorchRandom");
      }
      sampler.Read("seed", out.seed, INT64_MIN, INT64_MAX);
      sampler.Read("worldSize", out.world_size, 1, kMaxWorldSize);
      sampler.Read("epochs", out.epochs, 1, kMaxEpochs);
      sampler.Read("shuffle", out.shuffle);
      sampler.Read("dropLast", out.drop_last);
    });
  });
}

// A count or a percentage, as Kubernetes' maxUnavailable.
void ReadMaxUnavailable(YamlMap& rollout, std::string& out) {
  rollout.Read("maxUnavailable", out);
  const bool share = out.ends_with('%');
  const std::string_view digits = std::string_view(out).substr(0, out.size() - (share ? 1 : 0));
  if (ParseWholeNumber<std::uint32_t>(digits, share ? 100 : kMaxNodes).value_or(0) == 0) {
    rollout.Fail("maxUnavailable", "'" + out + "', allowed: a count from 1 to " +
                                       std::to_string(kMaxNodes) + ", or a share from 1% to 100%");
  }
}

constexpr std::uint32_t kDeadlineSecondsMax = std::numeric_limits<std::int32_t>::max();

void ReadRollout(YamlMap& spec, Rollout& out) {
  spec.In("rollout", [&](YamlMap& rollout) {
    rollout.Read("strategy",
                 {{"Staged", RolloutStrategy::kStaged}, {"AllAtOnce", RolloutStrategy::kAllAtOnce}},
                 out.strategy);
    rollout.Read("partition", out.partition, 0, kMaxNodes);
    ReadMaxUnavailable(rollout, out.max_unavailable);
    rollout.Read("activateAt",
                 {{"EpochBoundary", ActivateAt::kEpochBoundary}, {"Now", ActivateAt::kNow}},
                 out.activate_at);
    rollout.Read("paused", out.paused);
    rollout.Read("acknowledge", out.acknowledge);
    // What a cluster alone can do, in files that both read.
    std::uint32_t deadline_seconds = 0;
    rollout.Read("progressDeadlineSeconds", deadline_seconds, 1, kDeadlineSecondsMax);
    rollout.Read("epochDeadlineSeconds", deadline_seconds, 1, kDeadlineSecondsMax);
    std::string restarted_at;
    rollout.Read("restartedAt", restarted_at);
    rollout.In("abort", [&](YamlMap& abort) {
      abort.ReadShare("whenBelowPredictedBy", out.abort.when_below_predicted_by);
      abort.ReadShare("whenWorseThanPreviousBy", out.abort.when_worse_than_previous_by);
      abort.Read("after", out.abort.after, 1, 1000);
    });
  });
}

// Commands ask for it, so it is checked and goes nowhere.
void ReadGoal(YamlMap& spec) {
  spec.In("goal", [](YamlMap& goal) {
    const auto check = [&goal](const char* name, auto parse) {
      std::string text;
      goal.Read(name, text);
      const auto parsed = parse(text);
      if (goal.Has(name) && !parsed) goal.Fail(name, parsed.error().message());
    };
    check("waiting", dataset::ParseWaitingGoal);
    check("cost", dataset::ParseCostGoal);
    if (goal.Has("waiting") == goal.Has("cost")) goal.Fail("waiting", "set either waiting or cost");
  });
}

}  // namespace

CachePlan ReadCachePlan(YamlMap& document) {
  CachePlan plan;
  ReadMetadata(document, plan.name, plan.name_space);
  if (!document.Has("spec")) document.Fail("spec", "missing, write spec: {dataset: …}");
  document.In("spec", [&](YamlMap& spec) {
    spec.NeedSubdomain("dataset", plan.dataset);
    plan.where = spec.Where("dataset");
    spec.Read("retention", api::kRetentions, plan.retention);
    spec.Read("objective", api::kObjectives, plan.objective);
    ReadJobs(spec, plan.jobs);
    ReadRollout(spec, plan.rollout);
    ReadGoal(spec);
    spec.Read("revisionHistoryLimit", plan.revision_history_limit, 0, 1000);
  });
  return plan;
}

}  // namespace optcache::config::internal
