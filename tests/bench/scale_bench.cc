// What a large cluster says: messages and bytes to and from the coordinator, counted at the real
// service in one process, on a clock of its own; and of one node's pass between nodes, counted from
// the real plan and encoded by the real codec. Nodes report, poll, answer inventories and fetch
// bases as cache-node does; bytes are bodies, without HTTP's heads. Prints JSON.
//
//   bench_scale --nodes 1000 --jobs 8 --samples 10000000

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/random.h"
#include "bench/cpu_timer.h"
#include "control/control_service.h"
#include "coordination/codec.h"
#include "plan/plan.h"
#include "sampler/order_source.h"
#include "support/manual_clock.h"
#include "wire/codec.h"

namespace optcache {
namespace {

using bench::CpuTimer;
using namespace std::chrono_literals;

constexpr double kCapacity = 0.3;
constexpr Duration kTick = 50ms;
constexpr Duration kReportEvery = 1s;
constexpr std::uint64_t kSampleBytes = 110'000;

struct Size {
  std::uint32_t nodes = 1000;
  std::uint32_t jobs = 8;
  std::uint32_t samples = 10'000'000;
  std::uint32_t pass_seconds = 1000;
};

// A kind of message, both ways.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes_in = 0;  // of the coordinator
  std::uint64_t bytes_out = 0;
};

enum Kind : std::uint8_t { kReport, kState, kInventory, kBase, kKinds };
constexpr std::array<std::string_view, kKinds> kNames = {"report", "state", "inventory", "base"};

struct Node {
  coordination::Report report;
  Duration next_report{};
  bool polling = false;
  coordination::RequestNumber answered = 0;
  std::string base;
};

class Cluster {
 public:
  explicit Cluster(const Size& size) : size_(size), service_(clock_, {}), nodes_(size.nodes) {
    service_.SetDatasets({{.name = "vision/large",
                           .manifest_digest = std::string(64, 'a'),
                           .key = 1,
                           .samples = size.samples,
                           .bytes = size.samples * kSampleBytes,
                           .capacity = static_cast<ByteCount>(
                               kCapacity * static_cast<double>(size.samples * kSampleBytes)),
                           .namespaces = {"vision"}}},
                         {});
    for (std::uint32_t n = 0; n < size.nodes; ++n) {
      nodes_[n].report = {
          .node = fmt::format("optcache-node-{:05}", n),
          .incarnation = 1'789'000'000'000ULL + n,
          .address = fmt::format("10.0.{}.{}:4100", n / 256, n % 256),
          .metrics = fmt::format("http://10.0.{}.{}:4101/metrics", n / 256, n % 256),
          .capacity = 2 * size.samples * kSampleBytes / size.nodes,
          .manifest_url = fmt::format("https://10.0.{}.{}:4102", n / 256, n % 256),
          .manifests = {std::string(64, 'a')}};
      nodes_[n].report.datasets.push_back({.name = "vision/large",
                                           .manifest_digest = std::string(64, 'a'),
                                           .total_samples = size.samples,
                                           .total_bytes = size.samples * kSampleBytes});
    }
  }

  // All nodes come within `spread`.
  void NodesJoin(Duration spread) {
    for (std::uint32_t n = 0; n < size_.nodes; ++n)
      nodes_[n].next_report = now_ + spread * n / size_.nodes;
    present_ = size_.nodes;
    Run(spread + 5s);
  }
  // The ranks of all jobs, one a node and job, attach within `spread`, in a random order.
  void JobsStart(Duration spread) {
    std::vector<std::uint32_t> order(size_.nodes * size_.jobs);
    std::iota(order.begin(), order.end(), 0U);
    Random random(1);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.Below(i)]);
    const Duration start = now_;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Duration at = start + spread * static_cast<int>(i) / static_cast<int>(order.size());
      while (now_ < at)
        Step();
      Attach(order[i] / size_.jobs, order[i] % size_.jobs);
    }
    Run(5s);
  }
  void NodeLeaves() { --present_; }
  void Run(Duration time) {
    for (const Duration end = now_ + time; now_ < end;)
      Step();
  }

  // What has happened since the last call, as JSON.
  std::string Phase(std::string_view name) {
    const double seconds = std::chrono::duration<double>(now_ - phase_began_).count();
    std::string json = fmt::format(
        R"({{"phase": "{}", "seconds": {:.1f}, "versions": {}, "cpu_s": {:.3f}, "state_bytes": {}, "base_bytes": {})",
        name, seconds, service_.coordinator().state().version.counter - phase_version_,
        cpu_.seconds() - phase_cpu_, state_bytes_, base_bytes_);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      json += fmt::format(R"(, "{}": {{"messages": {}, "bytes_in": {}, "bytes_out": {}}})",
                          kNames[kind], traffic_[kind].messages, traffic_[kind].bytes_in,
                          traffic_[kind].bytes_out);
    }
    traffic_ = {};
    phase_began_ = now_;
    phase_cpu_ = cpu_.seconds();
    phase_version_ = service_.coordinator().state().version.counter;
    return json + "}";
  }

 private:
  void Attach(std::uint32_t node, std::uint32_t job) {
    nodes_[node].report.streams.push_back(
        {.id = 0xa1b2c3d4e5f60000U + job,
         .name = fmt::format("vision/training-job-{}/large/train", job),
         .incarnation = 1,
         .dataset = "vision/large",
         .dataset_key = 1,
         .ranks = {{.rank = node,
                    .recipe = {.sampler_kind = 1,
                               .size = size_.samples,
                               .seed = job,
                               .world = size_.nodes,
                               .passes = 90},
                    .started = true,
                    .start = node,
                    .position = node}}});
    nodes_[node].next_report = std::min(nodes_[node].next_report, now_);
  }

  void Step() {
    for (std::uint32_t n = 0; n < present_; ++n)
      Act(nodes_[n]);
    cpu_.Start();
    service_.Tick();
    cpu_.Stop();
    for (Node* const node : std::exchange(asked_, {}))
      AnswerInventory(*node);
    for (Node* const node : std::exchange(fetches_, {})) {
      Send(kBase, {.url = "/v1/base/" + node->base}, [this](const net::HttpResponse& response) {
        base_bytes_ = response.shared_body ? response.shared_body->size() : 0;
      });
    }
    clock_.Advance(kTick);
    now_ += kTick;
  }

  void Act(Node& node) {
    if (now_ >= node.next_report) {
      node.next_report = now_ + kReportEvery;
      Report(node);
    }
    if (!node.polling && node.report.member != 0) Poll(node);
  }

  void Report(Node& node) {
    const std::uint64_t step = std::uint64_t{size_.samples} / size_.pass_seconds;
    for (coordination::StreamReport& stream : node.report.streams) {
      if (!planned_) break;  // all ranks read on from when the plan is there
      for (coordination::RankReport& rank : stream.ranks)
        rank.position = std::min<Position>(rank.position + step, size_.samples);
    }
    Send(kReport, {.method = "POST", .url = "/v1/report", .body = ToJson(node.report)},
         [&node](const net::HttpResponse& response) {
           const auto answer = coordination::ParseReportAnswer(response.body);
           if (answer) node.report.member = answer->member;
         });
  }

  void Poll(Node& node) {
    node.polling = true;
    Send(kState,
         {.url = fmt::format("/v1/state?after={}&member={}", FormatVersion(node.report.applied),
                             node.report.node)},
         [this, &node](const net::HttpResponse& response) {
           node.polling = false;
           if (response.status == 200)
             Take(node, service_.coordinator().state(), response.body.size());
         });
  }

  // Its share of what the plan keeps, once there is a plan.
  void AnswerInventory(const Node& node) {
    coordination::Inventory inventory{.node = node.report.node,
                                      .incarnation = node.report.incarnation,
                                      .dataset = "vision/large",
                                      .request = node.answered};
    const auto first = static_cast<SampleId>(&node - nodes_.data());
    const auto step = static_cast<SampleId>(size_.nodes / kCapacity);
    for (SampleId id = first; planned_ && id < size_.samples; id += step)
      inventory.ids.push_back(id);
    for (const coordination::StreamReport& stream : node.report.streams) {
      inventory.positions.push_back({.stream = stream.id,
                                     .rank = stream.ranks[0].rank,
                                     .next = {.position = stream.ranks[0].position}});
    }
    Send(kInventory, {.method = "POST", .url = "/v1/inventory", .body = ToJson(inventory)},
         [](const net::HttpResponse&) {});
  }

  void Take(Node& node, const coordination::DesiredState& state, std::size_t bytes) {
    state_bytes_ = bytes;
    node.report.applied = state.version;
    const coordination::DatasetState& dataset = state.datasets.front();
    planned_ = planned_ || dataset.planned != coordination::Version{};
    if (dataset.inventory_wanted != 0 && dataset.inventory_wanted != node.answered) {
      node.answered = dataset.inventory_wanted;
      asked_.push_back(&node);
    }
    if (!dataset.base_digest.empty() && dataset.base_digest != node.base) {
      node.base = dataset.base_digest;
      fetches_.push_back(&node);
    }
  }

  template <typename Answer>
  void Send(Kind kind, net::HttpRequest request, Answer answer) {
    Traffic& traffic = traffic_[kind];
    ++traffic.messages;
    traffic.bytes_in += request.body.size();
    cpu_.Start();
    service_.Handle(request, [this, kind, answer](const net::HttpResponse& response) {
      const std::string& body = response.shared_body ? *response.shared_body : response.body;
      traffic_[kind].bytes_out += body.size();
      answer(response);
    });
    cpu_.Stop();
  }

  const Size size_;
  ManualClock clock_;
  control::ControlService service_;
  std::vector<Node> nodes_;
  std::uint32_t present_ = 0;
  Duration now_{};
  bool planned_ = false;
  std::vector<Node*> asked_;
  std::vector<Node*> fetches_;
  std::array<Traffic, kKinds> traffic_{};
  std::size_t state_bytes_ = 0;
  std::size_t base_bytes_ = 0;
  CpuTimer cpu_;
  Duration phase_began_{};
  double phase_cpu_ = 0;
  std::uint64_t phase_version_ = 0;
};

// Sizes of frames with one item, which is how they go out where nodes are many and items few.
std::uint64_t FrameBytes(const wire::Message& message) {
  std::vector<std::byte> bytes;
  wire::AppendFrame(1, message, 0, bytes);
  return bytes.size();
}

// What nodes say to each other in the first pass of all jobs, a node's mean; payloads apart.
std::string NodesOfOnePass(const Size& size) {
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
  plan::Planner planner = *plan::Planner::Make(inputs, [&](StreamId job, PassNumber pass) {
    return std::make_shared<const std::vector<SampleId>>(orders[job].PassOrder(pass).value());
  });
  plan::PlanStats stats;
  const plan::PlanWindow window = planner.Next().value();
  for (const auto& plan : window.plans)
    stats += plan->stats();
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

void Run(const Size& size) {
  std::vector<std::string> phases;
  Cluster cluster(size);
  cluster.NodesJoin(10s);
  phases.push_back(cluster.Phase("nodes join"));
  cluster.JobsStart(20s);
  phases.push_back(cluster.Phase("jobs start"));
  cluster.Run(60s);
  phases.push_back(cluster.Phase("steady"));
  cluster.NodeLeaves();
  cluster.Run(60s);
  phases.push_back(cluster.Phase("a node leaves"));
  phases.push_back(NodesOfOnePass(size));
  fmt::print("[{}]\n", fmt::join(phases, ",\n "));
}

}  // namespace
}  // namespace optcache

int main(int argc, char** argv) {
  optcache::Size size;
  CLI::App app("What a large cluster says to its coordinator, and nodes to each other");
  app.add_option("--nodes", size.nodes)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--jobs", size.jobs)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--samples", size.samples)->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  optcache::Run(size);
  return 0;
}
