// What a plan costs: nanoseconds a read and memory a sample, for the slot plan and for MIN, beside
// the baselines of `optcache simulate` and MIN with a std::priority_queue in the same run. Orders
// are DistributedSampler's and timed apart; so is an inverse of theirs, alone. Of a first plan and
// its orders also how often it looks whether it is to stop, and how soon it then ends. Prints JSON.
//
//   bench_plan --samples 1281167 --epochs 90

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/random.h"
#include "base/stop_check.h"
#include "bench/counted_heap.h"
#include "bench/cpu_timer.h"
#include "opt4torch/decision_table.h"
#include "plan/plan.h"
#include "sampler/order_source.h"
#include "simulation/policies/opt4torch.h"
#include "simulation/policies/policy.h"

namespace optcache::plan {
namespace {

using bench::CpuTimer;
using sampler::OrderSource;

constexpr double kCapacity = 0.3;
// The peer's cost does not change from epoch to epoch, and is high.
constexpr PassNumber kPeerEpochs = 4;
constexpr std::size_t kPassesAhead = 3;  // of each stream, that a first plan can see
constexpr std::size_t kStops = 16;

struct Workload {
  std::uint32_t samples = 1'281'167;  // ImageNet
  PassNumber epochs = 90;             // of one stream; several share as many
  bool sizes_vary = false;            // then few requests are wanted
  bool ranks_uneven = false;          // then the first node has two, and the others one
};

struct Cost {
  std::string engine;
  std::size_t streams = 1;
  std::uint32_t nodes = 1;
  std::uint64_t reads = 0;
  CpuTimer order{};
  CpuTimer plan{};
  CpuTimer inverse{};
  std::size_t peak_bytes = 0;  // orders and the current plan included
  std::size_t order_bytes = 0;
  std::uint64_t hits = 0;
  std::uint64_t digest = 0;  // of the last window
};

// Makes orders and notes what that costs.
class OrderMaker {
 public:
  OrderMaker(const Workload& work, std::uint32_t world, std::int64_t seed, Cost& cost)
      : source_(OrderSource::Make({.size = work.samples, .seed = seed, .world = world}).value()),
        inverse_(work.samples),
        cost_(cost) {}

  Order Make(PassNumber pass) {
    cost_.order.Start();
    auto order = std::make_shared<const std::vector<SampleId>>(source_.PassOrder(pass).value());
    cost_.order.Stop();
    cost_.inverse.Start();
    for (std::size_t p = 0; p < order->size(); ++p)
      inverse_[(*order)[p]] = static_cast<std::uint32_t>(p);
    cost_.inverse.Stop();
    return order;
  }

 private:
  OrderSource source_;
  std::vector<std::uint32_t> inverse_;
  Cost& cost_;
};

Sizes SizesOf(const Workload& work) {
  if (!work.sizes_vary) return Sizes::Equal(work.samples, 1);
  Random random(1);
  std::vector<std::uint32_t> bytes(work.samples);
  for (std::uint32_t& size : bytes)
    size = static_cast<std::uint32_t>(1 + random.Below(1000));
  return Sizes(std::move(bytes));
}

Cost MeasurePlanner(const Workload& work, std::string engine, std::size_t streams, NodeIndex nodes,
                    Method method, std::size_t windows = std::numeric_limits<std::size_t>::max()) {
  const auto epochs = static_cast<PassNumber>(std::max<std::size_t>(work.epochs / streams, 2));
  Cost cost{.engine = std::move(engine), .streams = streams, .nodes = nodes};
  cost.reads = std::uint64_t{work.samples} * epochs * streams;
  Inputs inputs;
  inputs.sizes = SizesOf(work);
  const double capacity = kCapacity * static_cast<double>(inputs.sizes.total());
  inputs.capacities.assign(nodes, static_cast<ByteCount>(capacity) / nodes);
  inputs.objective = work.sizes_vary ? Objective::kRequests : Objective::kBytes;
  inputs.method = method;
  std::vector<NodeIndex> node_of_rank(nodes);
  std::iota(node_of_rank.begin(), node_of_rank.end(), NodeIndex{0});
  if (work.ranks_uneven) node_of_rank.insert(node_of_rank.begin(), NodeIndex{0});
  const auto world = static_cast<std::uint32_t>(node_of_rank.size());
  std::vector<OrderMaker> makers;
  for (StreamId id = 0; id < streams; ++id) {
    inputs.streams.push_back({.id = id, .node_of_rank = node_of_rank});
    makers.emplace_back(work, world, static_cast<std::int64_t>(id), cost);
  }
  std::size_t most_orders = 0;
  std::vector<std::weak_ptr<const std::vector<SampleId>>> made;
  const auto orders = [&](StreamId stream, PassNumber pass) -> Order {
    if (pass >= epochs) return nullptr;
    cost.plan.Stop();
    Order order = makers[stream].Make(pass);
    std::erase_if(made, [](const auto& old) { return old.expired(); });
    made.push_back(order);
    most_orders = std::max(most_orders, made.size());
    cost.plan.Start();
    return order;
  };
  const std::size_t before = bench::HeapBytes();
  bench::ResetHeapPeak();
  Planner planner = *Planner::Make(inputs, orders);
  for (std::size_t planned = 0; planned < windows; ++planned) {
    cost.plan.Start();
    const PlanWindow window = *planner.Next();
    cost.plan.Stop();
    if (window.plans.empty()) break;
    cost.digest = window.digest;
    for (const auto& plan : window.plans)
      cost.hits += plan->stats().local_hits;
  }
  cost.peak_bytes = bench::HeapPeakBytes() - before;
  cost.order_bytes = most_orders * work.samples * sizeof(SampleId);
  return cost;
}

// All reads are known at once, as these policies need it.
template <typename MakePolicy>
Cost MeasurePolicy(const Workload& work, std::string engine, const MakePolicy& make_policy) {
  const PassNumber epochs = std::min(work.epochs, kPeerEpochs);
  Cost cost{.engine = std::move(engine)};
  cost.reads = std::uint64_t{work.samples} * epochs;
  std::vector<SampleId> reads;
  OrderMaker maker(work, 1, 0, cost);
  for (PassNumber pass = 0; pass < epochs; ++pass) {
    const Order order = maker.Make(pass);
    reads.insert(reads.end(), order->begin(), order->end());
  }
  const Room room{.sizes = Sizes::Equal(work.samples, 1),
                  .capacity = static_cast<ByteCount>(kCapacity * work.samples)};
  const std::size_t before = bench::HeapBytes();
  bench::ResetHeapPeak();
  cost.plan.Start();
  const std::unique_ptr<Policy> policy = make_policy(room, reads);
  for (const SampleId sample : reads)
    cost.hits += std::uint64_t{policy->Read(sample)};
  cost.plan.Stop();
  cost.peak_bytes = bench::HeapPeakBytes() - before;
  return cost;
}

std::vector<Cost> MeasurePolicies(const Workload& work) {
  using Reads = std::vector<SampleId>;
  std::vector<Cost> costs;
  Future future;  // outlives the policies that read it
  std::vector<Opt4TorchStep> steps;
  costs.push_back(MeasurePolicy(work, "textbook MIN", [&](const Room& room, const Reads& reads) {
    future = FutureOf(reads, room.sizes.count());
    return MakeMin(room, future);
  }));
  const auto measure_table = [&](const char* name, auto decide) {
    costs.push_back(MeasurePolicy(work, name, [&](const Room& room, const Reads& reads) {
      future = FutureOf(reads, room.sizes.count());
      steps = decide(future, room);
      return RunOpt4Torch(steps, room.sizes.count(), room.capacity, Opt4TorchRuntime::kOneProcess);
    }));
  };
  measure_table("OPT4Torch", [](const Future& reads, const Room& room) {
    return PlanAsOpt4Torch(reads, room.sizes.count(), room.capacity);
  });
  measure_table("OPT4Torch's table, optimal",
                [](const Future& reads, const Room& room) { return PlanDecisions(reads, room); });
  const auto measure = [&](const char* name, auto make) {
    costs.push_back(
        MeasurePolicy(work, name, [make](const Room& room, const Reads&) { return make(room); }));
  };
  measure("pin", MakePin);
  measure("LRU", MakeLru);
  measure("FIFO", MakeFifo);
  measure("SIEVE", MakeSieve);
  measure("LFU", [](const Room& room) { return MakeLfu(room, Counting::kWhileHeld); });
  measure("random", [](const Room& room) { return MakeRandom(room, 1); });
  return costs;
}

// MIN by the book, one node, one epoch ahead: a heap of next uses that keeps stale entries.
Cost MeasurePriorityQueue(const Workload& work) {
  const PassNumber epochs = std::min(work.epochs, kPeerEpochs);
  Cost cost{.engine = "priority_queue"};
  cost.reads = std::uint64_t{work.samples} * epochs;
  OrderMaker maker(work, 1, 0, cost);
  const auto capacity = static_cast<std::size_t>(kCapacity * work.samples);
  std::vector<Position> next_use(work.samples);
  std::vector<std::uint8_t> kept(work.samples);
  std::priority_queue<std::pair<Position, SampleId>> farthest;
  std::size_t count = 0;
  const std::size_t before = bench::HeapBytes();
  bench::ResetHeapPeak();
  Order next = maker.Make(0);
  for (PassNumber pass = 0; pass < epochs; ++pass) {
    const Order current = std::move(next);
    next = maker.Make(pass + 1);
    cost.plan.Start();
    const Position next_start = (Position{pass} + 1) * work.samples;
    std::vector<Position> upcoming(work.samples);
    for (std::size_t p = 0; p < next->size(); ++p)
      upcoming[(*next)[p]] = next_start + p;
    for (const SampleId sample : *current) {
      if (kept[sample] != 0) {
        ++cost.hits;
      } else {
        ++count;
      }
      kept[sample] = 1;
      next_use[sample] = upcoming[sample];
      farthest.emplace(upcoming[sample], sample);
      while (count > capacity) {
        const auto [use, victim] = farthest.top();
        farthest.pop();
        if (kept[victim] == 0 || next_use[victim] != use) continue;
        kept[victim] = 0;
        --count;
      }
    }
    cost.plan.Stop();
  }
  cost.peak_bytes = bench::HeapPeakBytes() - before;
  cost.order_bytes = 2 * work.samples * sizeof(SampleId);
  return cost;
}

std::string ToJson(const Cost& cost, const Workload& work) {
  const auto a_sample = [&](std::size_t bytes) {
    return static_cast<double>(bytes) / work.samples / static_cast<double>(cost.streams);
  };
  return fmt::format(
      R"({{"engine": "{}", "streams": {}, "nodes": {}, "order_ns": {:.2f}, "plan_ns": {:.2f}, )"
      R"("inverse_ns": {:.2f}, "bytes_a_sample": {:.2f}, "order_bytes_a_sample": {:.2f}, )"
      R"("hit_ratio": {:.5f}}})",
      cost.engine, cost.streams, cost.nodes, cost.order.NanosecondsPer(cost.reads),
      cost.plan.NanosecondsPer(cost.reads), cost.inverse.NanosecondsPer(cost.reads),
      a_sample(cost.peak_bytes), a_sample(cost.order_bytes),
      static_cast<double>(cost.hits) / static_cast<double>(cost.reads));
}

// Of a first plan that is told to stop, in seconds of the processor.
struct Stops {
  double between_looks = 0;  // the longest time between two looks at the stop
  double to_the_end = 0;     // the longest from the look that stops it until it has freed all
};

// Plans until the `last_look`-th look, and makes the orders, too. Returns how often it looked.
std::size_t PlanUntil(std::size_t last_look, const Workload& work, std::size_t streams,
                      NodeIndex nodes, Stops& stops) {
  std::size_t looks = 0;
  double looked = CpuTimer::Now();
  const StopCheck stop([&] {
    if (looks >= last_look) return true;
    const double now = CpuTimer::Now();
    stops.between_looks = std::max(stops.between_looks, now - std::exchange(looked, now));
    return ++looks == last_look;
  });
  {
    Inputs inputs;
    inputs.sizes = Sizes::Equal(work.samples, 1);
    inputs.capacities.assign(nodes, static_cast<ByteCount>(kCapacity * work.samples) / nodes);
    inputs.stop = stop;
    Fill(inputs.base, work.samples, kNoNode, stop);
    std::vector<NodeIndex> node_of_rank(nodes);
    std::iota(node_of_rank.begin(), node_of_rank.end(), NodeIndex{0});
    std::vector<OrderSource> sources;
    for (StreamId id = 0; id < streams; ++id) {
      inputs.streams.push_back({.id = id, .node_of_rank = node_of_rank});
      sources.push_back(
          OrderSource::Make(
              {.size = work.samples, .seed = static_cast<std::int64_t>(id), .world = nodes})
              .value());
    }
    const auto orders = [&](StreamId stream, PassNumber pass) -> Order {
      auto order = sources[stream].PassOrder(pass, stop);
      return order ? std::make_shared<const std::vector<SampleId>>(*std::move(order)) : nullptr;
    };
    Result<Planner> planner = Planner::Make(std::move(inputs), orders);
    if (planner) (void)planner->Next();
  }
  if (looks == last_look) stops.to_the_end = std::max(stops.to_the_end, CpuTimer::Now() - looked);
  return looks;
}

Stops MeasureStops(const Workload& work, std::size_t streams, NodeIndex nodes) {
  Stops stops;
  const std::size_t looks =
      PlanUntil(std::numeric_limits<std::size_t>::max(), work, streams, nodes, stops);
  for (std::size_t i = 1; i <= kStops; ++i)
    PlanUntil(looks * i / kStops, work, streams, nodes, stops);
  return stops;
}

// A large cluster's first plan, as every node derives it when jobs begin.
void RunStart(const Workload& work, std::size_t streams, NodeIndex nodes) {
  Workload first = work;
  first.epochs = static_cast<PassNumber>(kPassesAhead * streams);
  Cost cost = MeasurePlanner(first, "start", streams, nodes, Method::kBest, 1);
  const Stops stops = MeasureStops(work, streams, nodes);
  fmt::print(R"({{"order_s": {:.2f}, "plan_s": {:.2f}, "look_s": {:.4f}, "stop_s": {:.4f}, )"
             R"("bytes_a_sample": {:.2f}, "order_bytes_a_sample": {:.2f}, "digest": "{:016x}"}})"
             "\n",
             cost.order.seconds(), cost.plan.seconds(), stops.between_looks, stops.to_the_end,
             static_cast<double>(cost.peak_bytes) / work.samples / static_cast<double>(streams),
             static_cast<double>(cost.order_bytes) / work.samples / static_cast<double>(streams),
             cost.digest);
}

void Run(const Workload& work) {
  std::vector<std::string> results;
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{4}, NodeIndex{16}}) {
    results.push_back(ToJson(MeasurePlanner(work, "slot plan", 1, nodes, Method::kBest), work));
  }
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{4}, NodeIndex{16}}) {
    results.push_back(ToJson(MeasurePlanner(work, "MIN", 1, nodes, Method::kMin), work));
  }
  results.push_back(ToJson(MeasurePlanner(work, "MIN", 4, NodeIndex{4}, Method::kMin), work));
  Workload uneven = work;
  uneven.ranks_uneven = true;
  for (const std::size_t streams : {1U, 4U}) {
    results.push_back(ToJson(
        MeasurePlanner(uneven, "MIN, two ranks on one node", streams, NodeIndex{4}, Method::kMin),
        work));
  }
  Workload varied = work;
  varied.sizes_vary = true;
  for (const std::size_t streams : {1U, 4U}) {
    const char* const engine =
        streams == 1 ? "slot plan for requests, sizes vary" : "MIN, sizes vary";
    results.push_back(
        ToJson(MeasurePlanner(varied, engine, streams, NodeIndex{4}, Method::kBest), work));
  }
  for (const Cost& cost : MeasurePolicies(work))
    results.push_back(ToJson(cost, work));
  results.push_back(ToJson(MeasurePriorityQueue(work), work));
  fmt::print("[{}]\n", fmt::join(results, ",\n "));
}

}  // namespace
}  // namespace optcache::plan

int main(int argc, char** argv) {
  optcache::plan::Workload work;
  CLI::App app("What a plan costs a read and a sample");
  app.add_option("--samples", work.samples)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--epochs", work.epochs)->check(CLI::PositiveNumber)->capture_default_str();
  std::size_t streams = 0;
  optcache::NodeIndex nodes = 1000;
  app.add_option("--start", streams, "Only the first plan of so many streams");
  app.add_option("--nodes", nodes, "of --start")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (streams > 0) {
    optcache::plan::RunStart(work, streams, nodes);
  } else {
    optcache::plan::Run(work);
  }
  return 0;
}
