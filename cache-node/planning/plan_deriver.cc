// Runs the planner on one thread, a window or a step of a trial at a time.
//
// Run takes work under the lock, does it without the lock, and looks again. The node's own windows
// come before trials. `progress_` says for each stream how far it is planned and how far it is
// wanted, which bounds how far the thread runs ahead and how many orders it holds. Begin and GiveUp
// stop the window under way by its stop token. A stopped window means nothing: DoOwn checks the
// token under the lock before it delivers. The node compares the number of its task as well,
// because a new task may come between this check and the delivery. `Planning` and `Work` belong to
// the thread alone; everything that callers touch is guarded by the mutex.

#include "cache-node/planning/plan_deriver.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace optcache::node {
namespace {

constexpr auto kLookAgain = std::chrono::seconds(1);  // bounds every wait

bool Contains(const std::vector<std::string>& ids, const std::string& id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

struct PlanDeriver::Planning {
  struct Passes {
    PassNumber last = 0;                   // that is known
    Position stops_at = plan::kWholePass;  // where each is taken to end
  };
  // Of the passes that the planner has looked at.
  using Orders = std::map<std::pair<StreamId, PassNumber>, plan::Order>;

  std::uint64_t number = 0;
  coordination::Version version;
  std::shared_ptr<const std::vector<wire::MemberId>> members;
  NodeIndex self = kNoNode;
  plan::Sizes sizes;
  std::map<StreamId, Passes> passes;  // of each stream
  std::shared_ptr<Orders> orders;
  plan::Planner planner;
  StopCheck stop;  // then a window means nothing
  bool positions = false;
  bool first = true;

  static Result<Planning> Start(const PlanTask& task, const StopCheck& stop) {
    ASSIGN_OR_RETURN(StreamOrders made, OrdersOf(task, stop));
    const auto sources = std::make_shared<StreamOrders>(std::move(made));
    std::map<StreamId, Passes> passes;
    for (const coordination::StreamState& stream : task.streams)
      passes[stream.id] = {.last = LastPass(stream), .stops_at = StopsAt(stream)};
    const auto orders = std::make_shared<Orders>();
    auto provide = [sources, orders](StreamId stream, PassNumber pass) -> plan::Order {
      const auto found = sources->find(stream);
      plan::Order order = found == sources->end() ? nullptr : found->second->PassOrder(pass);
      if (order != nullptr) (*orders)[{stream, pass}] = order;
      return order;
    };
    ASSIGN_OR_RETURN(plan::Inputs inputs, InputsOf(task, task.base, stop));
    ASSIGN_OR_RETURN(plan::Planner planner, plan::Planner::Make(std::move(inputs), provide));
    const auto members = std::make_shared<const std::vector<wire::MemberId>>(MembersOf(task));
    return Planning{.number = task.number,
                    .version = task.version,
                    .members = members,
                    .self = IndexOf(*members, task.self),
                    .sizes = task.sizes,
                    .passes = std::move(passes),
                    .orders = orders,
                    .planner = std::move(planner),
                    .stop = stop,
                    .positions = task.positions};
  }

  DerivedWindow Next(PlannedShares& shares) {
    DerivedWindow window{
        .number = number, .version = version, .first = std::exchange(first, false)};
    Result<plan::PlanWindow> next = planner.Next();
    if (!next) {
      window.status = std::move(next).error();
      return window;
    }
    window.evictions = std::move(next->evictions);
    window.passes_ahead = next->passes_ahead;
    for (const plan::Relocation& move : next->relocations) {
      if (move.from == self)
        window.departures.push_back({.id = move.sample, .receiver = members->at(move.to)});
    }
    for (auto& pass : next->plans) {
      const plan::PassKey key = pass->key();
      const auto& [last, stops_at] = passes.at(key.stream);
      if (key.pass > last) continue;  // nobody knows what will be read there
      const plan::Order& order = orders->at({key.stream, key.pass});
      // Windows are about a pass each: what is begun is planned to its end before anybody reads
      // there, since two passes are kept ahead. The last is not followed by another, and of those
      // that stop early a window holds several.
      const bool is_planned_on = key.pass < last && stops_at == plan::kWholePass;
      const Position end = std::min<Position>(stops_at, order->size());
      window.planned[key.stream] = key.pass + (is_planned_on || pass->end() == end ? 1 : 0);
      const plan::NodeShare share = shares.Add(pass, self, order, sizes, stop);
      DerivedPass derived{
          .plan = std::move(pass), .members = members, .stops_at = stops_at, .share = share};
      if (positions) {
        derived.positions = FirstPositions(*order, sizes.count(), stop);
        derived.length = end;
      }
      window.passes.push_back(std::move(derived));
    }
    std::erase_if(*orders, [&window](const auto& order) {
      const auto planned = window.planned.find(order.first.first);
      return planned != window.planned.end() && order.first.second + 1 < planned->second;
    });
    return window;
  }
};

PlanDeriver::PlanDeriver(Deliver deliver)
    : deliver_(std::move(deliver)), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

PlanDeriver::~PlanDeriver() {
  Stop();
}

void PlanDeriver::Stop() {
  thread_.request_stop();
  const MutexLock lock(mutex_);
  own_stop_.request_stop();
  trial_stop_.request_stop();
  changed_.NotifyAll();
}

// What is derived next has a stop of its own.
void PlanDeriver::StopOwn() {
  own_stop_.request_stop();
  if (!thread_.get_stop_token().stop_requested()) own_stop_ = std::stop_source();
}

void PlanDeriver::Begin(PlanTask task) {
  const MutexLock lock(mutex_);
  StopOwn();
  progress_.clear();
  for (const auto& stream : task.streams) {
    progress_[stream.id] = {.planned = stream.cut.pass, .last = LastPass(stream)};
    progress_[stream.id].WantThrough(stream.cut.pass + 1);
  }
  next_task_ = std::move(task);
  given_up_ = false;
  changed_.NotifyAll();
}

void PlanDeriver::GiveUp() {
  const MutexLock lock(mutex_);
  StopOwn();
  progress_.clear();
  next_task_.reset();
  running_ = false;
  given_up_ = true;
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

void PlanDeriver::Try(TrialTask task) {
  const MutexLock lock(mutex_);
  tried_.push_back(task.id);
  trials_.push_back(std::move(task));
  changed_.NotifyAll();
}

void PlanDeriver::TryOnly(const std::vector<std::string>& ids) {
  const auto is_over = [&ids](const std::string& id) { return !Contains(ids, id); };
  const MutexLock lock(mutex_);
  std::erase_if(tried_, is_over);
  std::erase_if(trials_, [&](const TrialTask& trial) { return is_over(trial.id); });
  if (is_over(trying_)) trial_stop_.request_stop();
}

bool PlanDeriver::OwnIsWanted() {
  if (next_task_ || given_up_) return true;
  return running_ && std::ranges::any_of(progress_, [](const auto& stream) {
           return stream.second.planned <= stream.second.through;
         });
}

struct PlanDeriver::Work {
  std::optional<Planning> planning;
  PlannedShares shares;
  std::stop_token own_stop;
  std::optional<TrialRun> trial;
  std::stop_token trial_stop;
  // What is to be done now: own windows before trials'.
  std::optional<PlanTask> task;
  bool is_given_up = false;
  bool is_own = false;
};

bool PlanDeriver::TakeWork(Work& work, const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    if (work.trial && !Contains(tried_, work.trial->id())) work.trial.reset();
    work.is_own = OwnIsWanted();
    if (work.is_own || work.trial || !trials_.empty()) break;
    changed_.WaitUntil(mutex_, SystemClock().Now() + kLookAgain);
  }
  work.task = std::exchange(next_task_, std::nullopt);
  work.is_given_up = std::exchange(given_up_, false);
  work.own_stop = own_stop_.get_token();
  if (!work.is_own && !work.trial && !trials_.empty()) {
    trying_ = trials_.front().id;
    trial_stop_ = std::stop_source();
    work.trial_stop = trial_stop_.get_token();
    work.trial.emplace(std::move(trials_.front()), StopCheck(work.trial_stop));
    trials_.pop_front();
  }
  return !stop.stop_requested();
}

void PlanDeriver::DoOwn(Work& work) {
  if (work.task || work.is_given_up) work.planning.reset();
  if (work.is_given_up) return work.shares.Clear();
  DerivedWindow window;
  if (work.task) {
    work.shares.Begin(*work.task);
    Result<Planning> started = Planning::Start(*work.task, StopCheck(work.own_stop));
    if (started) {
      work.planning.emplace(*std::move(started));
    } else {
      window = {.number = work.task->number,
                .version = work.task->version,
                .status = std::move(started).error(),
                .first = true};
    }
  }
  if (work.planning) window = work.planning->Next(work.shares);
  {
    const MutexLock lock(mutex_);
    if (work.own_stop.stop_requested()) return;
    running_ = work.planning && window.status.ok() && !window.passes.empty();
    for (const auto& [id, planned] : window.planned) {
      const auto stream = progress_.find(id);
      if (stream == progress_.end()) continue;
      stream->second.planned = std::max(stream->second.planned, planned);
    }
  }
  deliver_(std::move(window));
}

void PlanDeriver::DoTrial(Work& work) {
  std::optional<coordination::TrialReport> report = work.trial->Step();
  const bool is_over = work.trial_stop.stop_requested();
  if (!report && !is_over) return;
  work.trial.reset();
  if (is_over) return;
  DerivedWindow window;
  window.trial = std::move(report);
  deliver_(std::move(window));
}

void PlanDeriver::Run(const std::stop_token& stop) {
  Work work;
  while (TakeWork(work, stop)) {
    if (work.is_own) {
      DoOwn(work);
    } else {
      DoTrial(work);
    }
  }
}

}  // namespace optcache::node
