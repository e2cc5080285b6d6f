#include "bench/scale_plan.h"

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/cpu_timer.h"
#include "sampler/order_source.h"
#include "wire/codec.h"

namespace optcache::bench {
namespace {

// Sizes of frames with one item, which is how they go out where nodes are many and items few.
std::uint64_t FrameBytes(const wire::Message& message) {
  std::vector<std::byte> bytes;
  const Status appended = wire::AppendFrame(1, message, 0, bytes);
  return appended.ok() ? bytes.size() : 0;
}

}  // namespace

FirstPlan DerivePlan(const Size& size) {
  plan::Inputs inputs{.sizes = plan::Sizes::Equal(size.samples, 1)};
  const auto room = static_cast<ByteCount>(kCapacity * size.samples / size.nodes);
  inputs.capacities.assign(size.nodes, room);
  std::vector<NodeIndex> node_of_rank(size.nodes);
  std::iota(node_of_rank.begin(), node_of_rank.end(), NodeIndex{0});
  std::vector<sampler::OrderSource> orders;
  for (std::uint32_t job = 0; job < size.jobs; ++job) {
    inputs.streams.push_back({.id = job, .node_of_rank = node_of_rank});
    orders.push_back(
        sampler::OrderSource::Make({.size = size.samples, .seed = job, .world = size.nodes})
            .value());
  }
  FirstPlan derived;
  CpuTimer cpu;
  cpu.Start();
  plan::Planner planner = *plan::Planner::Make(inputs, [&](StreamId job, PassNumber pass) {
    return std::make_shared<const std::vector<SampleId>>(orders[job].PassOrder(pass).value());
  });
  const plan::PlanWindow window = planner.Next().value();
  for (const auto& plan : window.plans)
    derived.stats += plan->stats();
  planner.Next().value();
  cpu.Stop();
  derived.seconds = cpu.seconds();
  return derived;
}

std::string NodesOfOnePass(const Size& size, const plan::PlanStats& stats) {
  // A read that its node does not hold asks the home, which gives a lease or says who has it, and
  // is told how that went; what is kept is told to the home, and what is given up.
  const std::uint64_t asked = stats.store_reads + stats.peer_hits;
  const std::uint64_t look_up = FrameBytes(wire::Lookup{.ids = {1}}) +
                                FrameBytes(wire::LookupReply{.items = {{}}}) +
                                FrameBytes(wire::LeaseUpdate{.leases = {{1, 1}}});
  const std::uint64_t push = FrameBytes(wire::Announce{.ids = {1}}) + FrameBytes(wire::Push{}) +
                             FrameBytes(wire::StoreReply{}) +
                             2 * FrameBytes(wire::Holding{.gained = {1}});
  return fmt::format(
      R"({{"phase": "between nodes", "reads": {}, "asked": {}, "moves": {}, "messages": {}, "bytes": {}}})",
      stats.accesses / size.nodes, asked / size.nodes, stats.moves / size.nodes,
      (3 * asked + 5 * stats.moves) / size.nodes,
      (look_up * asked + push * stats.moves) / size.nodes);
}

}  // namespace optcache::bench
