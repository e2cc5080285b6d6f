#include "cache-node/plan_deriver.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "coordination/stream_recipe.h"
#include "sampler/order_source.h"

namespace optcache::node {
namespace {

constexpr auto kLookAgain = std::chrono::seconds(1);  // bounds every wait

// Replays one stream's passes.
struct StreamOrder {
  coordination::StreamState stream;
  sampler::OrderSource source;

  plan::Order PassOrder(PassNumber pass) {
    if (stream.recipe.passes != 0 && pass >= stream.recipe.passes) return nullptr;
    const std::uint64_t epoch = stream.first_epoch + std::uint64_t{stream.epoch_step} *
                                                         (pass - std::min(pass, stream.first_pass));
    auto order = source.PassOrder(epoch);
    if (!order) return nullptr;
    return std::make_shared<const std::vector<SampleId>>(*std::move(order));
  }
};

Result<plan::Inputs> ToInputs(const PlanTask& task, const std::vector<wire::MemberId>& members) {
  const auto index_of = [&members](wire::MemberId member) {
    const auto it = std::lower_bound(members.begin(), members.end(), member);
    return it == members.end() || *it != member ? kNoNode
                                                : static_cast<NodeIndex>(it - members.begin());
  };
  plan::Inputs inputs{.sizes = task.sizes};
  inputs.max_moved_bytes_per_sample = MaxMovedBytes(task.capacities, task.sizes);
  inputs.objective = task.objective == coordination::Objective::kRequests
                         ? plan::Objective::kRequests
                         : plan::Objective::kBytes;
  for (const auto& capacity : task.capacities)
    inputs.capacities.push_back(capacity.bytes);
  for (const coordination::StreamState& stream : task.streams) {
    plan::StreamInput input{.id = stream.id,
                            .rate = stream.rate_permille,
                            .pass = stream.cut.pass,
                            .position = stream.cut.position};
    for (const wire::MemberId member : stream.node_of_rank) {
      input.node_of_rank.push_back(index_of(member));
    }
    inputs.streams.push_back(std::move(input));
  }
  inputs.base.assign(task.sizes.count(), kNoNode);
  for (const auto& [member, ids] : task.base) {
    const NodeIndex node = index_of(member);
    if (node == kNoNode) continue;
    for (const SampleId id : ids) {
      if (id >= task.sizes.count()) {
        return Error(Code::kInvalidArgument, "the base names a sample that does not exist");
      }
      inputs.base[id] = node;
    }
  }
  return inputs;
}

}  // namespace

ByteCount MaxMovedBytes(const std::vector<coordination::MemberCapacity>& capacities,
                        const plan::Sizes& sizes) {
  ByteCount smallest = plan::kUnlimitedBytes;
  for (const auto& capacity : capacities) {
    if (capacity.bytes > 0) smallest = std::min(smallest, capacity.bytes);
  }
  if (smallest == plan::kUnlimitedBytes || sizes.count() == 0) return plan::kUnlimitedBytes;
  // A quarter of the transit reserve of the smallest member, which is 2 % of its capacity; but
  // samples of common size always move, else hardly anything would where few fit in a node.
  return std::max(smallest / 200, 4 * (sizes.total() / sizes.count()));
}

struct PlanDeriver::Run {
  coordination::Version version;
  std::shared_ptr<const std::vector<wire::MemberId>> members;
  plan::Planner planner;
  bool first = true;

  static Result<Run> Start(const PlanTask& task) {
    auto members = std::make_shared<std::vector<wire::MemberId>>();
    for (const auto& capacity : task.capacities)
      members->push_back(capacity.member);
    auto orders = std::make_shared<std::map<StreamId, StreamOrder>>();
    for (const coordination::StreamState& stream : task.streams) {
      ASSIGN_OR_RETURN(const sampler::Recipe recipe, coordination::SamplerRecipe(stream.recipe));
      ASSIGN_OR_RETURN(sampler::OrderSource source, sampler::OrderSource::Make(recipe));
      orders->emplace(stream.id, StreamOrder{stream, std::move(source)});
    }
    ASSIGN_OR_RETURN(plan::Inputs inputs, ToInputs(task, *members));
    auto provide = [orders](StreamId stream, PassNumber pass) -> plan::Order {
      const auto found = orders->find(stream);
      return found == orders->end() ? nullptr : found->second.PassOrder(pass);
    };
    ASSIGN_OR_RETURN(plan::Planner planner, plan::Planner::Make(std::move(inputs), provide));
    return Run{.version = task.version, .members = members, .planner = std::move(planner)};
  }

  DerivedWindow Next() {
    DerivedWindow window{.version = version, .first = std::exchange(first, false)};
    Result<plan::PlanWindow> next = planner.Next();
    if (!next) {
      window.status = std::move(next).error();
      return window;
    }
    window.evictions = std::move(next->evictions);
    for (auto& pass : next->plans)
      window.passes.push_back({std::move(pass), members});
    return window;
  }
};

PlanDeriver::PlanDeriver(Deliver deliver)
    : deliver_(std::move(deliver)), thread_([this](const std::stop_token& stop) { Work(stop); }) {}

PlanDeriver::~PlanDeriver() {
  thread_.request_stop();
  changed_.NotifyAll();
}

void PlanDeriver::Begin(PlanTask task) {
  const MutexLock lock(mutex_);
  progress_.clear();
  for (const auto& stream : task.streams) {
    const PassNumber end = stream.recipe.passes;
    progress_[stream.id] = {.planned = stream.cut.pass,
                            .last = end == 0 ? std::numeric_limits<PassNumber>::max() : end - 1};
    progress_[stream.id].WantThrough(stream.cut.pass + 1);
  }
  next_task_ = std::move(task);
  changed_.NotifyAll();
}

void PlanDeriver::PlanThrough(const std::map<StreamId, PassNumber>& passes) {
  const MutexLock lock(mutex_);
  for (const auto& [stream, pass] : passes) {
    const auto it = progress_.find(stream);
    if (it != progress_.end()) it->second.WantThrough(pass);
  }
  changed_.NotifyAll();
}

bool PlanDeriver::Waiting() {
  if (next_task_) return false;
  if (!running_) return true;
  // The planner's windows are about a pass each; a started pass is planned to its end before
  // anybody reads there, since two passes are kept ahead.
  return std::ranges::all_of(
      progress_, [](const auto& stream) { return stream.second.planned > stream.second.through; });
}

void PlanDeriver::Work(const std::stop_token& stop) {
  std::optional<Run> run;
  while (!stop.stop_requested()) {
    std::optional<PlanTask> task;
    {
      const MutexLock lock(mutex_);
      while (Waiting() && !stop.stop_requested()) {
        changed_.WaitUntil(mutex_, SystemClock().Now() + kLookAgain);
      }
      task = std::exchange(next_task_, std::nullopt);
    }
    if (stop.stop_requested()) return;
    DerivedWindow window;
    if (task) {
      run.reset();
      Result<Run> started = Run::Start(*task);
      if (started) {
        run.emplace(*std::move(started));
      } else {
        window = {.version = task->version, .status = std::move(started).error(), .first = true};
      }
    }
    if (run) window = run->Next();
    {
      const MutexLock lock(mutex_);
      running_ = run && window.status.ok() && !window.passes.empty();
      for (const DerivedPass& pass : window.passes) {
        const auto stream = progress_.find(pass.plan->key().stream);
        if (next_task_ || stream == progress_.end()) continue;  // it speaks of a task given up
        stream->second.planned = std::max(stream->second.planned, pass.plan->key().pass + 1);
      }
    }
    deliver_(std::move(window));
  }
}

}  // namespace optcache::node
