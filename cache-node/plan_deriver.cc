#include "cache-node/plan_deriver.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "coordination/plan_base.h"
#include "coordination/stream_recipe.h"
#include "sampler/id_list.h"
#include "sampler/order_source.h"

namespace optcache::node {
namespace {

constexpr auto kLookAgain = std::chrono::seconds(1);  // bounds every wait

// A stream's passes, one after the other.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;
  virtual plan::Order PassOrder(PassNumber pass) = 0;
};

// Replays them from its recipe.
class ReplayedOrder final : public StreamOrder {
 public:
  ReplayedOrder(coordination::StreamState stream, sampler::OrderSource source)
      : stream_(std::move(stream)), source_(std::move(source)) {}

  plan::Order PassOrder(PassNumber pass) override {
    if (stream_.recipe.passes != 0 && pass >= stream_.recipe.passes) return nullptr;
    const std::uint64_t epoch =
        stream_.first_epoch +
        std::uint64_t{stream_.epoch_step} * (pass - std::min(pass, stream_.first_pass));
    auto order = source_.PassOrder(epoch);
    if (!order) return nullptr;
    return std::make_shared<const std::vector<SampleId>>(*std::move(order));
  }

 private:
  coordination::StreamState stream_;
  sampler::OrderSource source_;
};

// Has them from lists. A pass after the last known one is taken to be like that one, so that what
// is kept for it is more than nothing; no plan of it is given out.
class ListedOrder final : public StreamOrder {
 public:
  static Result<std::unique_ptr<StreamOrder>> Make(const coordination::StreamState& stream,
                                                   const PlanTask& task) {
    std::unique_ptr<ListedOrder> made(new ListedOrder);
    made->samples_ = task.sizes.count();
    made->end_ = stream.recipe.passes;
    for (const coordination::PassTrace& trace : stream.traces) {
      if (trace.pass < stream.cut.pass) continue;
      const auto list = task.lists.find(trace.digest);
      if (list == task.lists.end() || coordination::DigestHex(*list->second) != trace.digest) {
        return Error(Code::kDataLoss, "the list of pass " + std::to_string(trace.pass) +
                                          " of stream " + stream.name +
                                          " is not here, or not the bytes of its digest");
      }
      ASSIGN_OR_RETURN(const auto lists, sampler::ParseLists(*list->second, made->samples_));
      if (lists.lengths.size() != stream.recipe.world) {
        return Error(Code::kInvalidArgument,
                     "the list of stream " + stream.name + " is for another number of ranks");
      }
      RETURN_IF_ERROR(sampler::CheckIds(lists, made->samples_));
      made->lists_[trace.pass] = list->second;
    }
    return made;
  }

  plan::Order PassOrder(PassNumber pass) override {
    if (lists_.empty() || pass < lists_.begin()->first || (end_ != 0 && pass >= end_))
      return nullptr;
    const auto last = std::prev(lists_.end());
    if (pass >= last->first) {
      if (last_order_ == nullptr) last_order_ = Read(*last->second);
      return last_order_;
    }
    const auto list = lists_.find(pass);
    return list == lists_.end() ? nullptr : Read(*list->second);
  }

 private:
  ListedOrder() = default;
  plan::Order Read(const std::string& bytes) const {
    auto order = sampler::PassOrder(sampler::ParseLists(bytes, samples_).value(), samples_);
    return std::make_shared<const std::vector<SampleId>>(std::move(order).value());
  }

  std::uint64_t samples_ = 0;
  PassNumber end_ = 0;  // the stream is over before this pass; 0: nobody knows
  std::map<PassNumber, std::shared_ptr<const std::string>> lists_;
  plan::Order last_order_;
};

Result<std::unique_ptr<StreamOrder>> MakeOrder(const coordination::StreamState& stream,
                                               const PlanTask& task) {
  if (!stream.recipe.known) return ListedOrder::Make(stream, task);
  ASSIGN_OR_RETURN(const sampler::Recipe recipe, coordination::SamplerRecipe(stream.recipe));
  ASSIGN_OR_RETURN(sampler::OrderSource source, sampler::OrderSource::Make(recipe));
  return std::make_unique<ReplayedOrder>(stream, std::move(source));
}

// The last pass whose order is known.
PassNumber LastPass(const coordination::StreamState& stream) {
  const PassNumber end = stream.recipe.passes;
  const PassNumber last = end == 0 ? std::numeric_limits<PassNumber>::max() : end - 1;
  return stream.traces.empty() ? last : std::min(last, stream.traces.back().pass);
}

Position StopsAt(const coordination::StreamState& stream) {
  return stream.stops_at == 0 ? plan::kWholePass : stream.stops_at;
}

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
                            .position = stream.cut.position,
                            .stops_at = StopsAt(stream)};
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
  struct Passes {
    PassNumber last = 0;                   // that is known
    Position stops_at = plan::kWholePass;  // where each is taken to end
  };
  std::map<StreamId, Passes> passes;  // of each stream
  // Of the passes that the planner has looked at.
  std::shared_ptr<std::map<std::pair<StreamId, PassNumber>, Position>> lengths;
  plan::Planner planner;
  bool first = true;

  static Result<Run> Start(const PlanTask& task) {
    auto members = std::make_shared<std::vector<wire::MemberId>>();
    for (const auto& capacity : task.capacities)
      members->push_back(capacity.member);
    auto orders = std::make_shared<std::map<StreamId, std::unique_ptr<StreamOrder>>>();
    std::map<StreamId, Passes> passes;
    for (const coordination::StreamState& stream : task.streams) {
      ASSIGN_OR_RETURN(auto order, MakeOrder(stream, task));
      orders->emplace(stream.id, std::move(order));
      passes[stream.id] = {.last = LastPass(stream), .stops_at = StopsAt(stream)};
    }
    ASSIGN_OR_RETURN(plan::Inputs inputs, ToInputs(task, *members));
    auto lengths = std::make_shared<std::map<std::pair<StreamId, PassNumber>, Position>>();
    auto provide = [orders, lengths](StreamId stream, PassNumber pass) -> plan::Order {
      const auto found = orders->find(stream);
      plan::Order order = found == orders->end() ? nullptr : found->second->PassOrder(pass);
      if (order != nullptr) (*lengths)[{stream, pass}] = order->size();
      return order;
    };
    ASSIGN_OR_RETURN(plan::Planner planner, plan::Planner::Make(std::move(inputs), provide));
    return Run{.version = task.version,
               .members = members,
               .passes = std::move(passes),
               .lengths = std::move(lengths),
               .planner = std::move(planner)};
  }

  DerivedWindow Next() {
    DerivedWindow window{.version = version, .first = std::exchange(first, false)};
    Result<plan::PlanWindow> next = planner.Next();
    if (!next) {
      window.status = std::move(next).error();
      return window;
    }
    window.evictions = std::move(next->evictions);
    window.passes_ahead = next->passes_ahead;
    for (auto& pass : next->plans) {
      const plan::PassKey key = pass->key();
      const auto& [last, stops_at] = passes.at(key.stream);
      if (key.pass > last) continue;  // nobody knows what will be read there
      // Windows are about a pass each: what is begun is planned to its end before anybody reads
      // there, since two passes are kept ahead. The last is not followed by another, and of those
      // that stop early a window holds several.
      const bool is_planned_on = key.pass < last && stops_at == plan::kWholePass;
      const Position end = std::min(stops_at, lengths->at({key.stream, key.pass}));
      window.planned[key.stream] = key.pass + (is_planned_on || pass->end() == end ? 1 : 0);
      window.passes.push_back({std::move(pass), members, stops_at});
    }
    std::erase_if(*lengths, [&window](const auto& length) {
      const auto planned = window.planned.find(length.first.first);
      return planned != window.planned.end() && length.first.second + 1 < planned->second;
    });
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
    progress_[stream.id] = {.planned = stream.cut.pass, .last = LastPass(stream)};
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
      for (const auto& [id, planned] : window.planned) {
        const auto stream = progress_.find(id);
        if (next_task_ || stream == progress_.end()) continue;  // it speaks of a task given up
        stream->second.planned = std::max(stream->second.planned, planned);
      }
    }
    deliver_(std::move(window));
  }
}

}  // namespace optcache::node
