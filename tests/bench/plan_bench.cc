// What a plan costs: nanoseconds a read and working memory a sample, for the slot plan and for MIN,
// beside MIN with a std::priority_queue in the same run.
//
//   bench_plan [epochs] [samples]      3 epochs of 1,281,167 samples (ImageNet) unless given; a
//   whole
//                                      run of 90 epochs takes minutes
//
// Orders are made beforehand, a few at a time, and timed apart. Compare within one run only.

#include <malloc.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "base/random.h"
#include "plan/plan.h"

namespace {

std::size_t live_bytes = 0;
std::size_t peak_bytes = 0;

}  // namespace

// Counts what is allocated, so that working memory needs no guessing.
void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) std::abort();
  live_bytes += malloc_usable_size(block);
  peak_bytes = std::max(peak_bytes, live_bytes);
  return block;
}
void operator delete(void* block) noexcept {
  live_bytes -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t /*size*/) noexcept {
  operator delete(block);
}

namespace optcache::plan {
namespace {

constexpr double kCapacity = 0.3;

class Timer {
 public:
  void Start() { started_ = CpuSeconds(); }
  void Stop() { total_ += CpuSeconds() - started_; }
  double NanosecondsPer(std::uint64_t count) const {
    return total_ * 1e9 / static_cast<double>(count);
  }

 private:
  // Of this process: others on the machine then disturb less.
  static double CpuSeconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  double started_ = 0;
  double total_ = 0;
};

struct Workload {
  std::uint32_t samples = 0;
  PassNumber epochs = 0;
};

Order MakeOrder(const Workload& work, StreamId stream, PassNumber pass) {
  auto order = std::make_shared<std::vector<SampleId>>(work.samples);
  std::iota(order->begin(), order->end(), SampleId{0});
  Random random((stream << 32U) + pass);
  for (std::size_t i = order->size(); i > 1; --i) {
    // 32 bits by multiplication: as fast as a shuffle gets, so that the plan's share shows.
    const std::uint64_t j = ((random.Next() >> 32U) * i) >> 32U;
    std::swap((*order)[i - 1], (*order)[static_cast<std::size_t>(j)]);
  }
  return order;
}

struct Cost {
  double order_ns = 0;
  double plan_ns = 0;
  double bytes_a_sample = 0;  // at its peak, by stream; orders and the current plan included
  double hit_ratio = 0;
};

Cost MeasurePlanner(const Workload& work, std::size_t streams, NodeIndex nodes, Method method) {
  Timer order_timer;
  Timer plan_timer;
  Inputs inputs;
  inputs.sizes = Sizes::Equal(work.samples, 1);
  inputs.capacities.assign(nodes, static_cast<ByteCount>(kCapacity * work.samples) / nodes);
  inputs.method = method;
  std::vector<NodeIndex> node_of_rank(nodes);
  std::iota(node_of_rank.begin(), node_of_rank.end(), NodeIndex{0});
  for (StreamId id = 0; id < streams; ++id) {
    inputs.streams.push_back({.id = id, .node_of_rank = node_of_rank});
  }
  const auto orders = [&](StreamId stream, PassNumber pass) -> Order {
    if (pass >= work.epochs) return nullptr;
    plan_timer.Stop();
    order_timer.Start();
    Order order = MakeOrder(work, stream, pass);
    order_timer.Stop();
    plan_timer.Start();
    return order;
  };
  const std::size_t before = live_bytes;
  peak_bytes = live_bytes;
  Planner planner = *Planner::Make(inputs, orders);
  PlanStats stats;
  while (true) {
    plan_timer.Start();
    const PlanWindow window = *planner.Next();
    plan_timer.Stop();
    if (window.plans.empty()) break;
    for (const auto& plan : window.plans)
      stats += plan->stats();
  }
  const std::uint64_t reads = std::uint64_t{work.samples} * work.epochs * streams;
  return {.order_ns = order_timer.NanosecondsPer(reads),
          .plan_ns = plan_timer.NanosecondsPer(reads),
          .bytes_a_sample = static_cast<double>(peak_bytes - before) / work.samples /
                            static_cast<double>(streams),
          .hit_ratio = static_cast<double>(stats.local_hits) / static_cast<double>(reads)};
}

// MIN by the book, one node, one epoch ahead: a heap of next uses that keeps stale entries.
Cost MeasurePriorityQueue(const Workload& work) {
  Timer order_timer;
  Timer plan_timer;
  const auto capacity = static_cast<std::size_t>(kCapacity * work.samples);
  std::vector<Position> next_use(work.samples);
  std::vector<std::uint8_t> kept(work.samples);
  std::priority_queue<std::pair<Position, SampleId>> farthest;
  std::size_t count = 0;
  std::uint64_t hits = 0;
  const std::size_t before = live_bytes;
  peak_bytes = live_bytes;
  Order next = MakeOrder(work, 0, 0);
  for (PassNumber pass = 0; pass < work.epochs; ++pass) {
    const Order current = std::move(next);
    order_timer.Start();
    next = MakeOrder(work, 0, pass + 1);
    order_timer.Stop();
    plan_timer.Start();
    const Position next_start = (Position{pass} + 1) * work.samples;
    std::vector<Position> upcoming(work.samples);
    for (std::size_t p = 0; p < next->size(); ++p)
      upcoming[(*next)[p]] = next_start + p;
    for (const SampleId sample : *current) {
      if (kept[sample] != 0) {
        ++hits;
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
    plan_timer.Stop();
  }
  const std::uint64_t reads = std::uint64_t{work.samples} * work.epochs;
  return {.order_ns = order_timer.NanosecondsPer(reads),
          .plan_ns = plan_timer.NanosecondsPer(reads),
          .bytes_a_sample = static_cast<double>(peak_bytes - before) / work.samples,
          .hit_ratio = static_cast<double>(hits) / static_cast<double>(reads)};
}

void Print(const char* engine, std::size_t streams, unsigned nodes, const Cost& cost) {
  std::printf("%-22s %7zu %5u %13.1f %12.1f %14.1f %9.4f\n", engine, streams, nodes, cost.order_ns,
              cost.plan_ns, cost.bytes_a_sample, cost.hit_ratio);
}

void Run(const Workload& work) {
  std::printf("%u samples, %u epochs, capacity %.1f\n", work.samples, work.epochs, kCapacity);
  std::printf("%-22s %7s %5s %13s %12s %14s %9s\n", "ENGINE", "STREAMS", "NODES", "ORDER ns/READ",
              "PLAN ns/READ", "BYTES/SAMPLE", "HITS");
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{4}, NodeIndex{16}}) {
    Print("slot plan", 1, nodes, MeasurePlanner(work, 1, nodes, Method::kBest));
  }
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{4}, NodeIndex{16}}) {
    Print("MIN, bitmap tree", 1, nodes, MeasurePlanner(work, 1, nodes, Method::kMin));
  }
  for (const NodeIndex nodes : {NodeIndex{1}, NodeIndex{4}, NodeIndex{16}}) {
    Print("MIN, bitmap tree", 4, nodes, MeasurePlanner(work, 4, nodes, Method::kMin));
  }
  Print("MIN, priority_queue", 1, 1, MeasurePriorityQueue(work));
}

}  // namespace
}  // namespace optcache::plan

int main(int argc, char** argv) {
  const auto number = [&](int i, unsigned long otherwise) {
    return argc > i ? std::strtoul(argv[i], nullptr, 10) : otherwise;
  };
  optcache::plan::Run({.samples = static_cast<std::uint32_t>(number(2, 1'281'167)),
                       .epochs = static_cast<optcache::PassNumber>(number(1, 3))});
  return 0;
}
