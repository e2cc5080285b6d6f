// Derives two windows of a revision, and reports the digest and the forecast that come of them.
//
// The second window is the one that counts: the first still begins with what the nodes hold at
// present. Of each stream the last window in which it reads stays in `streams_`. Under retention
// Optimal the planner makes the windows (PlannedWindows). Pin, LRU and None have no plan, so
// plan::HomeForecast simulates them with the samples' home nodes (HomedWindows). Each Step derives
// one window, so that the deriver can put its own windows in between. The digest folds all windows
// and depends on the inputs alone: nodes agree if their digests do.

#include "cache-node/planning/trial_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "cache/home_map.h"

namespace optcache::node {
namespace {

using coordination::Retention;

constexpr std::uint64_t kTrialDigestSeed = 0x6f70742d74726961ULL;  // "opt-tria"
constexpr int kWindows = 2;  // the first begins with what lies there, the second with what follows
constexpr std::size_t kMaxErrorBytes = 500;

std::uint64_t Fold(std::uint64_t digest, std::uint64_t word) {
  return Random::Mix(digest ^ word);
}

coordination::Forecast ToForecast(const plan::NodeShare& share) {
  return {.reads = share.reads,
          .store_reads = share.store_reads,
          .read_bytes = share.read_bytes,
          .store_bytes = share.store_bytes,
          .moved_bytes = share.moved_bytes};
}

plan::HomeRule RuleOf(Retention retention) {
  switch (retention) {
    case Retention::kPin:
      return plan::HomeRule::kPin;
    case Retention::kLru:
      return plan::HomeRule::kLru;
    default:
      return plan::HomeRule::kNone;
  }
}

}  // namespace

struct TrialRun::Windows {
  virtual ~Windows() = default;
  struct Window {
    Streams streams;  // empty: nothing is left
    std::uint64_t digest = 0;
  };
  virtual Result<Window> Next() = 0;
};

struct TrialRun::PlannedWindows final : TrialRun::Windows {
  using Orders = std::map<std::pair<StreamId, PassNumber>, plan::Order>;

  PlannedWindows(plan::Planner a_planner, const PlanTask& task, std::shared_ptr<Orders> all_orders,
                 StopCheck a_stop)
      : planner(std::move(a_planner)),
        stop(std::move(a_stop)),
        orders(std::move(all_orders)),
        self(IndexOf(MembersOf(task), task.self)),
        sizes(task.sizes) {
    for (const auto& stream : task.streams)
      stops_at[stream.id] = StopsAt(stream);
  }

  Result<Window> Next() override {
    ASSIGN_OR_RETURN(const plan::PlanWindow planned, planner.Next());
    Window window{.streams = {}, .digest = planned.digest};
    for (const auto& pass : planned.plans) {
      const auto& [stream, number] = pass->key();
      const plan::Order& order = orders->at({stream, number});
      plan::StreamForecast& forecast = window.streams[stream];
      forecast.pass_reads = std::min<Position>(order->size(), stops_at.at(stream));
      const plan::PlanStats& stats = pass->stats();
      forecast.all += {.reads = stats.accesses,
                       .store_reads = stats.store_reads,
                       .read_bytes = stats.bytes,
                       .store_bytes = stats.store_bytes,
                       .moved_bytes = stats.moved_bytes};
      forecast.own += plan::ShareOf(self, *pass, *order, sizes, pass->end(), stop);
    }
    for (const auto& pass : planned.plans) {
      orders->erase(orders->lower_bound({pass->key().stream, 0}),
                    orders->lower_bound({pass->key().stream, pass->key().pass}));
    }
    return window;
  }

  plan::Planner planner;
  StopCheck stop;
  std::shared_ptr<Orders> orders;
  NodeIndex self;
  plan::Sizes sizes;
  std::map<StreamId, Position> stops_at;
};

struct TrialRun::HomedWindows final : TrialRun::Windows {
  explicit HomedWindows(plan::HomeForecast a_forecast) : forecast(std::move(a_forecast)) {}

  Result<Window> Next() override {
    Window window;
    ASSIGN_OR_RETURN(window.streams, forecast.Next());
    const plan::NodeShare all = plan::OnePassOfEach(window.streams).all;
    for (const std::uint64_t number :
         {all.reads, all.store_reads, all.read_bytes, all.store_bytes, all.moved_bytes})
      window.digest = Fold(window.digest, number);
    return window;
  }

  plan::HomeForecast forecast;
};

Result<std::unique_ptr<TrialRun::Windows>> TrialRun::Start() const {
  const PlanTask task{.version = task_.inputs->version,
                      .self = task_.inputs->self,
                      .streams = task_.following.streams,
                      .objective = task_.following.objective,
                      .capacities = task_.following.capacities,
                      .base = {},
                      .sizes = task_.inputs->sizes,
                      .lists = task_.inputs->lists};
  ASSIGN_OR_RETURN(StreamOrders made, OrdersOf(task, stop_));
  ASSIGN_OR_RETURN(plan::Inputs inputs, InputsOf(task, task_.inputs->base, stop_));
  const auto sources = std::make_shared<StreamOrders>(std::move(made));
  const auto find = [sources](StreamId stream, PassNumber pass) -> plan::Order {
    const auto found = sources->find(stream);
    return found == sources->end() ? nullptr : found->second->PassOrder(pass);
  };
  if (task_.following.retention == Retention::kOptimal) {
    const auto orders = std::make_shared<PlannedWindows::Orders>();
    const auto provide = [find, orders](StreamId stream, PassNumber pass) {
      plan::Order order = find(stream, pass);
      if (order != nullptr) (*orders)[{stream, pass}] = order;
      return order;
    };
    ASSIGN_OR_RETURN(plan::Planner planner, plan::Planner::Make(std::move(inputs), provide));
    return std::make_unique<PlannedWindows>(std::move(planner), task, orders, stop_);
  }
  const std::vector<wire::MemberId> members = MembersOf(task);
  plan::HomeInputs homed{.rule = RuleOf(task_.following.retention),
                         .sizes = task.sizes,
                         .capacities = std::move(inputs.capacities),
                         .streams = std::move(inputs.streams),
                         .base = std::move(inputs.base),
                         .homes = {},
                         .stop = stop_};
  Fill(homed.homes, task.sizes.count(), kNoNode, stop_);
  const cache::HomeMap homes(task_.dataset, members);
  const bool keeps = homed.rule != plan::HomeRule::kNone && !members.empty();
  for (SampleId id = 0; keeps && id < homed.homes.size() && !stop_.Now();
       ++id)  // each looks at all
    homed.homes[id] = IndexOf(members, homes.Home(id));
  ASSIGN_OR_RETURN(plan::HomeForecast forecast,
                   plan::HomeForecast::Make(std::move(homed), find, IndexOf(members, task.self)));
  return std::make_unique<HomedWindows>(std::move(forecast));
}

Status TrialRun::Derive() {
  if (!windows_) {
    is_over_ = task_.following.streams.empty();  // nobody reads, and nobody is expected to
    if (is_over_) return OkStatus();
    digest_ = kTrialDigestSeed;
    ASSIGN_OR_RETURN(windows_, Start());
  }
  ASSIGN_OR_RETURN(const Windows::Window window, windows_->Next());
  for (const auto& [stream, forecast] : window.streams)
    streams_[stream] = forecast;
  digest_ = Fold(digest_, window.digest);
  is_over_ = ++derived_ == kWindows || window.streams.empty();
  return OkStatus();
}

std::optional<coordination::TrialReport> TrialRun::Step() {
  const Status status = Derive();
  if (status.ok() && !is_over_) return std::nullopt;
  coordination::TrialReport report = Report();
  if (!status.ok()) {
    report = {.id = task_.id,
              .planned = task_.inputs->version,
              .error = status.ToString().substr(0, kMaxErrorBytes)};
  }
  windows_.reset();
  return report;
}

coordination::TrialReport TrialRun::Report() const {
  const plan::PassForecast forecast = plan::OnePassOfEach(streams_);
  return {.id = task_.id,
          .planned = task_.inputs->version,
          .digest = fmt::format("{:016x}", digest_),
          .all = ToForecast(forecast.all),
          .own = ToForecast(forecast.own)};
}

}  // namespace optcache::node
