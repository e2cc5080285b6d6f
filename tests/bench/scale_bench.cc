// What a large cluster says: messages and bytes to and from the coordinator, counted at the real
// service in one process, on a clock of its own; and of one node's pass between nodes, counted from
// the real plan and encoded by the real codec. Nodes report, poll, answer inventories and fetch
// bases as cache-node does; bytes are bodies, without HTTP's heads. Then another revision is rolled
// out by the real state machine; a node takes as long to derive a plan as it takes here. Prints
// JSON.
//
//   bench_scale --nodes 1000 --jobs 8 --samples 10000000

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/random.h"
#include "bench/cpu_timer.h"
#include "bench/scale_plan.h"
#include "control/control_service.h"
#include "coordination/codec.h"
#include "coordinator/rollout.h"
#include "support/manual_clock.h"

namespace optcache {
namespace {

using bench::CpuTimer;
using bench::FirstPlan;
using bench::kCapacity;
using bench::Size;
using namespace std::chrono_literals;

constexpr Duration kTick = 50ms;
constexpr Duration kReportEvery = 1s;
constexpr std::uint64_t kSampleBytes = 110'000;

// A kind of message, both ways.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes_in = 0;  // of the coordinator
  std::uint64_t bytes_out = 0;
};

enum Kind : std::uint8_t { kReport, kState, kInventory, kBase, kKinds };
constexpr std::array<std::string_view, kKinds> kNames = {"report", "state", "inventory", "base"};

// What a node derives until `at`.
struct OwnPlan {
  Duration at{};
  std::string name;  // of the revision
};
struct TrialToDerive {
  Duration at{};
  std::string id;
  coordination::Version planned;
};

template <typename Trials>
bool IsAmong(const Trials& trials, const std::string& id) {
  return std::ranges::any_of(trials, [&id](const auto& trial) { return trial.id == id; });
}

struct Node {
  coordination::Report report;
  coordination::Version planned;      // the plan that it follows, or derives
  std::optional<OwnPlan> own;         // comes first
  std::vector<TrialToDerive> trials;  // then these, one after the other
  Duration next_report{};
  bool polling = false;
  coordination::RequestNumber answered = 0;
  std::string base;
};

class Cluster {
 public:
  explicit Cluster(const Size& size) : size_(size), service_(clock_, {}), nodes_(size.nodes) {
    service_.SetDatasets({Spec()}, {});
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

  // The spec asks for another revision, whose plan takes a node `derive` to make, and is rolled out
  // a quarter of the nodes at a time, not waiting for epochs to end. Until `phase` has begun, or
  // ten minutes.
  void RollOut(Duration derive, coordination::RolloutPhase phase) {
    derive_ = derive;
    if (!rollout_) {
      rollout_ = Advance({}, Inputs(kOld));
      next_look_ = now_;
    }
    for (const Duration end = now_ + 10min; now_ < end && rollout_->phase != phase;) {
      if (now_ >= next_look_) Look();
      Step();
    }
  }
  void Run(Duration time) {
    for (const Duration end = now_ + time; now_ < end;)
      Step();
  }

  // What has happened since the last call, as JSON.
  std::string Phase(std::string_view name) {
    const double seconds = ToSeconds(now_ - phase_began_);
    std::string json = fmt::format(
        R"({{"phase": "{}", "seconds": {:.1f}, "versions": {}, "cpu_s": {:.3f}, "state_bytes": {}, "base_bytes": {})",
        name, seconds, service_.coordinator().state().version.counter - phase_version_,
        cpu_.seconds() - phase_cpu_, state_bytes_, base_bytes_);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      json += fmt::format(R"(, "{}": {{"messages": {}, "bytes_in": {}, "bytes_out": {}}})",
                          kNames[kind], traffic_[kind].messages, traffic_[kind].bytes_in,
                          traffic_[kind].bytes_out);
    }
    json += fmt::format(R"(, "writes": {}, "derive_s": {:.3f}, "operator_cpu_s": {:.3f})",
                        std::exchange(writes_, 0), ToSeconds(derive_),
                        operator_cpu_.seconds() - phase_operator_cpu_);
    traffic_ = {};
    phase_began_ = now_;
    phase_cpu_ = cpu_.seconds();
    phase_operator_cpu_ = operator_cpu_.seconds();
    phase_version_ = service_.coordinator().state().version.counter;
    return json + "}";
  }

 private:
  static constexpr const char* kOld = "5f0c9a1b22";
  static constexpr const char* kNew = "93be01d7ac";

  coordination::DatasetSpec Spec() const {
    const ByteCount bytes = size_.samples * kSampleBytes;
    return {.name = "vision/large",
            .manifest_digest = std::string(64, 'a'),
            .key = 1,
            .samples = size_.samples,
            .bytes = bytes,
            .capacity = static_cast<ByteCount>(kCapacity * static_cast<double>(bytes)),
            .namespaces = {"vision"},
            .revision = kOld};
  }
  static coordination::RevisionSpec Revision(const std::string& name) {
    return {.name = name,
            .objective = name == kNew ? coordination::Objective::kRequests
                                      : coordination::Objective::kBytes};
  }

  // What the operator's leader does each second: it looks, decides, writes, and then acts.
  void Look() {
    next_look_ = now_ + 1s;
    operator_cpu_.Start();
    const coordination::RolloutInputs inputs = Inputs(kNew);
    const coordination::RolloutState next = Advance(*rollout_, inputs);
    if (next != *rollout_) ++writes_;
    rollout_ = next;
    const coordination::RolloutOrders orders = OrdersOf(*rollout_, inputs);
    coordination::DatasetSpec spec = Spec();
    spec.revision = orders.current;
    spec.objective = Revision(orders.current).objective;
    if (!orders.update.empty())
      spec.update = {.revision = Revision(orders.update), .nodes = orders.nodes};
    for (const auto& [id, revision] : orders.trials)
      spec.trials.push_back({.id = id, .revision = Revision(revision)});
    if (spec != spec_) service_.SetDatasets({spec}, {});
    spec_ = std::move(spec);
    operator_cpu_.Stop();
  }

  coordination::RolloutInputs Inputs(const char* wanted) {
    const coordination::ClusterStatus status = service_.coordinator().Snapshot(clock_.Now());
    const coordination::DatasetStatus& dataset = status.datasets.front();
    coordination::RolloutInputs inputs{.revision = wanted};
    inputs.knobs.at_epoch_boundary = false;
    inputs.mean_sample_bytes = kSampleBytes;
    inputs.now = std::chrono::duration_cast<std::chrono::seconds>(now_).count();
    inputs.passes = dataset.passes;
    for (const coordination::NodeShare& node : dataset.nodes) {
      inputs.nodes.push_back({.name = node.name,
                              .revision = node.revision,
                              .planned = node.derived >= dataset.planned,
                              .trials = node.trials});
    }
    return inputs;
  }

  // On one thread of the node's: what it follows now, then trials. What lay before it in the queue
  // and is followed no more is given up.
  void Derive(Node& node, const coordination::DatasetState& state) {
    const bool is_new = std::exchange(node.planned, state.planned) != state.planned;
    if (derive_ == Duration::zero()) return;
    const bool updated =
        state.update && std::ranges::binary_search(state.update->members, node.report.member);
    const std::string& follows = updated ? state.update->revision.name : state.revision;
    coordination::DatasetReport& report = node.report.datasets.front();
    if (is_new) DeriveOwn(node);
    if (node.own) {
      node.own->name = follows;
    } else {
      report.revision = follows;  // as it did, by another name
      report.derived = state.planned;
    }
    const auto is_over = [&state](const std::string& id) { return !IsAmong(state.trials, id); };
    std::erase_if(report.trials, [&](const auto& trial) { return is_over(trial.id); });
    std::erase_if(node.trials, [&](const auto& trial) { return is_over(trial.id); });
    Duration at = node.own ? node.own->at : now_;
    if (!node.trials.empty()) at = std::max(at, node.trials.back().at);
    for (const coordination::TrialState& trial : state.trials) {
      if (!IsAmong(report.trials, trial.id) && !IsAmong(node.trials, trial.id))
        node.trials.push_back({.at = at += derive_, .id = trial.id, .planned = state.planned});
    }
  }

  void DeriveOwn(Node& node) {
    const Duration given_up =
        node.own ? std::max(node.own->at - now_, Duration::zero()) : Duration::zero();
    for (TrialToDerive& trial : node.trials) {
      if (trial.at > now_) trial.at += derive_ - given_up;
    }
    node.own = OwnPlan{.at = now_ + derive_, .name = {}};
  }

  void FinishDeriving(Node& node) {
    coordination::DatasetReport& report = node.report.datasets.front();
    if (node.own && node.own->at <= now_) {
      report.revision = node.own->name;
      report.derived = node.planned;
      node.own.reset();
    }
    std::erase_if(node.trials, [&](const TrialToDerive& derived) {
      if (derived.at > now_) return false;
      const std::uint64_t reads = std::uint64_t{size_.samples} * size_.jobs;
      const coordination::Forecast forecast{.reads = reads,
                                            .store_reads = reads * 2 / 5,
                                            .read_bytes = reads * kSampleBytes,
                                            .store_bytes = reads * 2 / 5 * kSampleBytes};
      report.trials.push_back({.id = derived.id,
                               .planned = derived.planned,
                               .digest = "00000000c0ffee00",
                               .all = forecast,
                               .own = forecast});
      return true;
    });
  }

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
      FinishDeriving(node);
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
    Derive(node, dataset);
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
  CpuTimer cpu_;  // of the coordinator
  CpuTimer operator_cpu_;
  Duration phase_began_{};
  double phase_cpu_ = 0;
  double phase_operator_cpu_ = 0;
  std::uint64_t phase_version_ = 0;
  Duration derive_{};
  std::optional<coordination::RolloutState> rollout_;
  coordination::DatasetSpec spec_;
  Duration next_look_{};
  std::uint64_t writes_ = 0;  // of the CachePlan's status
};

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
  const FirstPlan derived = DerivePlan(size);
  const auto derive = FromSeconds(std::max(derived.seconds, 1e-6));
  cluster.RollOut(derive, coordination::RolloutPhase::kActivate);
  phases.push_back(cluster.Phase("a patch, until prepared"));
  cluster.RollOut(derive, coordination::RolloutPhase::kComplete);
  phases.push_back(cluster.Phase("then until complete"));
  phases.push_back(NodesOfOnePass(size, derived.stats));
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
