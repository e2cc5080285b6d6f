// Turns changes into keys, and runs a reconciler for one key after the other.
//
//   Informer ─► map ─► WorkQueue ─► Work ─► Begin ─► Reconcile ─► ReconcileDone ─► End ─► Requeue
//      Wake posts a Work, at most one at a time; timers: due keys, resync, a late key
//
// The idea: a reconciler is told a key and no change, so several changes of one object are one
// piece of work, and a change that was missed is made good by the resync. Work always comes from
// the loop: a reconciler that ends at once would otherwise call itself deeper with each key.
//
// Invariants: the queue gives out a key once until Done. A reconciliation ends once: by its call,
// or by the death of its last ReconcileDone. A late one is only logged.

#include "kube/controller.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/histogram.h"
#include "base/log.h"
#include "base/random.h"

namespace optcache::kube {
namespace {

// Does a change matter to who makes the world as the object says? Its status is our own work.
bool MattersToItsController(const ObjectChange& change) {
  if (!change.before || !change.after) return true;
  const auto same = [&](const char* pointer) {
    return Find(*change.before, pointer) == Find(*change.after, pointer);
  };
  // Kinds without a generation have no status either that a controller writes.
  return GenerationOf(*change.after) == 0 || !same("/metadata/generation") ||
         !same("/metadata/labels") || !same("/metadata/annotations") ||
         !same("/metadata/deletionTimestamp");
}

}  // namespace

// One reconciliation under way, as its end sees it.
class ReconcileDone::Work {
 public:
  using Ended = std::function<void(ReconcileResult)>;
  explicit Work(Ended ended) : ended_(std::move(ended)) {}
  ~Work() { End({.status = Status(Code::kInternal, "the reconciliation was dropped")}); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void End(ReconcileResult result) {
    if (const Ended ended = std::exchange(ended_, nullptr)) ended(std::move(result));
  }

 private:
  Ended ended_;
};

void ReconcileDone::operator()(ReconcileResult result) const {
  work_->End(std::move(result));
}

MapFunction MapToSelf() {
  return [](const ObjectChange& change) { return std::vector{change.key}; };
}

MapFunction MapToController(const Resource& owner) {
  return [kind = owner.kind, group = owner.group](const ObjectChange& change) {
    std::vector<ObjectKey> keys;
    for (const ObjectCache::Entry& object : {change.before, change.after}) {
      const auto controller = object ? ControllerOf(*object) : std::nullopt;
      if (!controller || controller->kind != kind) continue;
      const std::string& version = controller->api_version;
      const std::size_t slash = version.find('/');
      if ((slash == std::string::npos ? "" : version.substr(0, slash)) != group) continue;
      ObjectKey key{.ns = change.key.ns, .name = controller->name};
      if (keys.empty() || keys.front() != key) keys.push_back(std::move(key));
    }
    return keys;
  };
}

class Controller::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(net::EventLoop& loop, const Clock& clock, ControllerOptions options, Reconciler& reconciler)
      : loop_(loop),
        clock_(clock),
        options_(std::move(options)),
        reconciler_(reconciler),
        queue_([&] {
          WorkQueueOptions queue = options_.queue;
          queue.name = options_.name;
          return queue;
        }()),
        random_(options_.seed),
        took_(kSecondsBounds) {}

  void Watch(Informer& informer, MapFunction map);
  void Start();
  void Stop(std::function<void()> stopped);
  void Enqueue(const ObjectKey& key) {
    queue_.Add(key, clock_.Now());
    Wake();
  }
  void EnqueueAfter(const ObjectKey& key, Duration wait) {
    queue_.AddAfter(key, wait, clock_.Now());
    Wake();
  }
  bool idle() const { return queue_.ready() == 0 && working_.empty(); }
  void VisitCounters(const CounterVisitor& visitor) const;

  Informer* primary = nullptr;

 private:
  struct Running {
    MonotonicTime began;
    net::Timer late;
  };

  void Wake();
  void Work();
  void Begin(const ObjectKey& key);
  void End(const ObjectKey& key, const ReconcileResult& result);
  void Requeue(const ObjectKey& key, const ReconcileResult& result);
  void ScheduleResync();

  net::EventLoop& loop_;
  const Clock& clock_;
  const ControllerOptions options_;
  Reconciler& reconciler_;
  WorkQueue queue_;
  Random random_;
  std::vector<const Informer*> informers_;
  bool running_ = false;
  std::function<void()> stopped_;
  bool posted_ = false;  // a Work is on its way
  std::map<ObjectKey, Running> working_;
  net::Timer due_;
  net::Timer resync_;
  std::map<std::string_view, std::uint64_t> results_;
  Histogram took_;
};

void Controller::Impl::Watch(Informer& informer, MapFunction map) {
  informers_.push_back(&informer);
  informer.OnChange([weak = weak_from_this(), map = std::move(map)](const ObjectChange& change) {
    const auto self = weak.lock();
    if (!self) return;
    for (const ObjectKey& key : map(change))
      self->Enqueue(key);
  });
  informer.OnSynced([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Wake();
  });
}

void Controller::Impl::Start() {
  running_ = true;
  ScheduleResync();
  Wake();
}

void Controller::Impl::Stop(std::function<void()> stopped) {
  running_ = false;
  due_.Cancel();
  resync_.Cancel();
  stopped_ = std::move(stopped);
  Wake();
}

// Work comes by the loop, never from within a change or an end: a reconciler that ends at once
// would go deeper with each key.
void Controller::Impl::Wake() {
  if (std::exchange(posted_, true)) return;
  loop_.Post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Work();
  });
}

void Controller::Impl::Work() {
  posted_ = false;
  if (!running_) {
    if (!working_.empty() || !stopped_) return;
    return std::exchange(stopped_, nullptr)();
  }
  const bool synced = std::all_of(informers_.begin(), informers_.end(),
                                  [](const Informer* informer) { return informer->synced(); });
  if (!synced) return;
  while (working_.size() < options_.max_concurrent) {
    const auto key = queue_.Take(clock_.Now());
    if (!key) break;
    Begin(*key);
    if (!running_) return;
  }
  due_.Cancel();
  if (const auto at = queue_.NextDue()) {
    const Duration wait = std::max<Duration>(*at - clock_.Now(), Duration::zero());
    due_ = loop_.After(wait, [this] { Work(); });
  }
}

void Controller::Impl::Begin(const ObjectKey& key) {
  net::Timer late = loop_.After(options_.late_after, [this, key] {
    Log(LogLevel::kWarning, "a reconciliation takes long, waiting for its end",
        {{"controller", options_.name}, {"object", key.ToString()}});
  });
  working_[key] = {.began = clock_.Now(), .late = std::move(late)};
  reconciler_.Reconcile(key, ReconcileDone(std::make_shared<ReconcileDone::Work>(
                                 [weak = weak_from_this(), key](ReconcileResult result) {
                                   if (const auto self = weak.lock()) self->End(key, result);
                                 })));
}

void Controller::Impl::End(const ObjectKey& key, const ReconcileResult& result) {
  const auto running = working_.extract(key);
  took_.Observe(ToSeconds(clock_.Now() - running.mapped().began));
  queue_.Done(key, clock_.Now());
  Requeue(key, result);
  Wake();
}

void Controller::Impl::Requeue(const ObjectKey& key, const ReconcileResult& result) {
  if (!result.status.ok()) {
    ++results_["error"];
    queue_.AddRateLimited(key, clock_.Now());
    const bool news = queue_.Failures(key) == 1;
    Log(news ? LogLevel::kWarning : LogLevel::kDebug, "cannot reconcile, trying again",
        {{"controller", options_.name},
         {"object", key.ToString()},
         {"failures", queue_.Failures(key)},
         {"error", result.status.ToString()}});
    return;
  }
  queue_.Forget(key);
  ++results_[result.requeue_after ? "requeue_after" : "success"];
  if (result.requeue_after) queue_.AddAfter(key, *result.requeue_after, clock_.Now());
}

void Controller::Impl::ScheduleResync() {
  const auto wait =
      std::chrono::duration_cast<Duration>(options_.resync * (1 + random_.Unit() / 10));
  resync_ = loop_.After(wait, [this] {
    if (primary != nullptr) {
      for (const ObjectKey& key : primary->cache().Keys())
        queue_.Add(key, clock_.Now());
    }
    Wake();
    ScheduleResync();
  });
}

void Controller::Impl::VisitCounters(const CounterVisitor& visitor) const {
  queue_.VisitCounters(visitor, clock_.Now());
  const MetricLabels labels = {{"controller", options_.name}};
  for (const auto& [result, count] : results_) {
    visitor(MetricKind::kCounter, "optcache_reconcile_total",
            {{"controller", options_.name}, {"result", std::string(result)}},
            static_cast<double>(count));
  }
  visitor(MetricKind::kGauge, "optcache_reconcile_active", labels,
          static_cast<double>(working_.size()));
  took_.Visit(visitor, "optcache_reconcile_seconds", labels);
}

Controller::Controller(net::EventLoop& loop, const Clock& clock, ControllerOptions options,
                       Reconciler& reconciler)
    : impl_(std::make_shared<Impl>(loop, clock, std::move(options), reconciler)) {}
Controller::~Controller() = default;

void Controller::For(Informer& informer) {
  impl_->primary = &informer;
  impl_->Watch(informer, [](const ObjectChange& change) {
    std::vector<ObjectKey> keys;
    if (MattersToItsController(change)) keys.push_back(change.key);
    return keys;
  });
}
void Controller::Watch(Informer& informer, MapFunction map) {
  impl_->Watch(informer, std::move(map));
}
void Controller::Start() {
  impl_->Start();
}
void Controller::Stop(std::function<void()> stopped) {
  impl_->Stop(std::move(stopped));
}
void Controller::Enqueue(const ObjectKey& key) {
  impl_->Enqueue(key);
}
void Controller::EnqueueAfter(const ObjectKey& key, Duration wait) {
  impl_->EnqueueAfter(key, wait);
}
bool Controller::idle() const {
  return impl_->idle();
}
void Controller::VisitCounters(const CounterVisitor& visitor) const {
  impl_->VisitCounters(visitor);
}

}  // namespace optcache::kube
