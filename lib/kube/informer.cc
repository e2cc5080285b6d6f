// Carries out what WatchCycle says (list, watch, wait), and keeps the cache.
//
//   Take ─► List ─► OnPage ... ─► FinishList ─► Watch ─► OnEvent ... ─► OnWatchEnded ─► Take
//
// The idea: deletions that happen while no watch runs leave no event. A list therefore notes all
// keys that it brings, and FinishList removes what it did not. An object of another uid under the
// same name is told as one that went and one that came.
//
// Invariants: the cache has a change before it is told. What differs in its resourceVersion alone,
// after the transform, is kept and not told. Answers to a request from before Stop are ignored
// (`generation_`). Once synced, it stays so: an old copy is better than none.

#include "kube/informer.h"

#include <set>
#include <utility>

#include "base/callback_guard.h"
#include "base/log.h"

namespace optcache::kube {
namespace {

// `after` is left as it was.
bool DiffersInVersionAlone(const Json& before, Json& after) {
  Json& version = after["metadata"]["resourceVersion"];
  const Json own = std::exchange(version, Find(before, "/metadata/resourceVersion"));
  const bool same = before == after;
  version = own;
  return same;
}

}  // namespace

void StripManagedFields(Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata != object.end() && metadata->is_object()) metadata->erase("managedFields");
}

Transform KeepOnly(std::vector<std::string> pointers) {
  return [pointers = std::move(pointers)](Json& object) {
    StripManagedFields(object);
    Json kept;
    for (const char* key : {"apiVersion", "kind", "metadata"}) {
      if (const auto found = object.find(key); found != object.end()) kept[key] = std::move(*found);
    }
    for (const std::string& pointer : pointers) {
      const Json& value = Find(object, pointer);
      if (!value.is_null()) kept[Json::json_pointer(pointer)] = value;
    }
    object = std::move(kept);
  };
}

class Informer::Impl {
 public:
  Impl(net::EventLoop& loop, const Clock& clock, Client& client, InformerOptions options)
      : loop_(loop),
        clock_(clock),
        client_(client),
        options_(std::move(options)),
        cycle_(options_.cycle, options_.seed),
        cache_(options_.indexes) {}

  void Start() {
    if (!std::exchange(running_, true)) Take(cycle_.Start());
  }
  void Stop() {
    running_ = false;
    ++generation_;
    timer_.Cancel();
    watch_.reset();
  }
  void OnChange(ChangeCallback callback);
  void OnSynced(std::function<void()> callback);
  void VisitCounters(const CounterVisitor& visitor) const;

  bool synced() const { return synced_; }
  MonotonicTime last_heard() const { return last_heard_; }
  const ObjectCache& cache() const { return cache_; }
  const Resource& resource() const { return options_.resource; }

 private:
  void Take(const CycleStep& step);
  void List(const ListStep& step);
  void Watch(const WatchStep& step);
  void OnPage(ApiResult<Json> page);
  void FinishList();
  void OnEvent(WatchEvent event);
  void OnWatchEnded(const std::optional<ApiError>& error);
  void LogFailure(const ApiError& error);

  void Put(Json object);
  void Remove(const ObjectKey& key);
  void Tell(const ObjectChange& change);

  net::EventLoop& loop_;
  const Clock& clock_;
  Client& client_;
  const InformerOptions options_;
  WatchCycle cycle_;
  ObjectCache cache_;
  bool running_ = false;
  bool synced_ = false;
  MonotonicTime last_heard_;
  std::uint64_t events_ = 0;
  bool failing_ = false;  // said so already
  // What an answer must still find to be wanted: raised by Stop.
  std::uint64_t generation_ = 0;
  std::set<ObjectKey> listed_;  // by the list under way
  std::unique_ptr<WatchHandle> watch_;
  net::Timer timer_;
  std::vector<ChangeCallback> on_change_;
  std::vector<std::function<void()>> on_synced_;
  CallbackGuard guard_;  // last
};

void Informer::Impl::OnChange(ChangeCallback callback) {
  for (const ObjectCache::Entry& entry : cache_.List())
    callback({.key = KeyOf(*entry), .before = nullptr, .after = entry});
  on_change_.push_back(std::move(callback));
}

void Informer::Impl::OnSynced(std::function<void()> callback) {
  if (synced_) return callback();
  on_synced_.push_back(std::move(callback));
}

void Informer::Impl::Take(const CycleStep& step) {
  if (const auto* list = std::get_if<ListStep>(&step)) return List(*list);
  if (const auto* watch = std::get_if<WatchStep>(&step)) return Watch(*watch);
  timer_ =
      loop_.After(std::get<WaitStep>(step).wait, [this] { Take(cycle_.Resume(clock_.Now())); });
}

void Informer::Impl::List(const ListStep& step) {
  if (step.first) listed_.clear();
  client_.ListPage(options_.resource, options_.selection, step.limit, step.continue_token,
                   guard_.Wrap([this, generation = generation_](ApiResult<Json> page) {
                     if (generation == generation_) OnPage(std::move(page));
                   }));
}

void Informer::Impl::OnPage(ApiResult<Json> page) {
  if (!page) {
    LogFailure(page.error());
    return Take(cycle_.OnListFailed(page.error(), clock_.Now()));
  }
  last_heard_ = clock_.Now();
  // A callback may stop the informer, and start it again: then another list is under way.
  const std::uint64_t generation = generation_;
  for (Json& object : (*page)["items"]) {
    const ObjectKey key = KeyOf(object);
    if (key.name.empty()) continue;
    listed_.insert(key);
    Put(std::move(object));
    if (generation != generation_) return;
  }
  const std::string continue_token = TextAt(*page, "/metadata/continue");
  if (continue_token.empty()) FinishList();
  if (generation != generation_) return;
  Take(cycle_.OnPage(ResourceVersionOf(*page), continue_token, clock_.Now()));
}

// What the list did not bring is gone: that is how deletions show that happened unseen.
void Informer::Impl::FinishList() {
  failing_ = false;
  const std::set<ObjectKey> listed = std::exchange(listed_, {});
  const std::uint64_t generation = generation_;
  for (const ObjectKey& key : cache_.Keys()) {
    if (!listed.contains(key)) Remove(key);
    if (generation != generation_) return;
  }
  if (std::exchange(synced_, true)) return;
  const auto callbacks = std::exchange(on_synced_, {});
  for (const auto& callback : callbacks)
    callback();
}

void Informer::Impl::Watch(const WatchStep& step) {
  watch_ = client_.Watch(
      {.resource = options_.resource,
       .selection = options_.selection,
       .resource_version = step.resource_version,
       .timeout = step.timeout,
       .idle_deadline = step.idle_deadline},
      {.on_event = [this](WatchEvent event) { OnEvent(std::move(event)); },
       .on_end = [this](const std::optional<ApiError>& error) { OnWatchEnded(error); }});
}

void Informer::Impl::OnEvent(WatchEvent event) {
  ++events_;
  failing_ = false;
  last_heard_ = clock_.Now();
  cycle_.OnProgress(ResourceVersionOf(event.object));
  if (event.type == WatchEventType::kBookmark) return;
  if (event.type == WatchEventType::kDeleted) return Remove(KeyOf(event.object));
  Put(std::move(event.object));
}

void Informer::Impl::OnWatchEnded(const std::optional<ApiError>& error) {
  watch_.reset();
  if (error && !error->expired()) LogFailure(*error);
  Take(cycle_.OnWatchEnded(error, clock_.Now()));
}

// Once, until it works again: an API server that is away is no news each time.
void Informer::Impl::LogFailure(const ApiError& error) {
  const LogLevel level = std::exchange(failing_, true) ? LogLevel::kDebug : LogLevel::kWarning;
  Log(level, "cannot follow objects, trying again",
      {{"kind", options_.resource.kind}, {"error", error.status.ToString()}});
}

void Informer::Impl::Put(Json object) {
  const ObjectKey key = KeyOf(object);
  const ObjectCache::Entry known = cache_.Find(key);
  if (known && ResourceVersionOf(*known) == ResourceVersionOf(object) &&
      UidOf(*known) == UidOf(object)) {
    return;
  }
  if (options_.transform) options_.transform(object);
  // One object that was deleted and made again unseen is two.
  if (known && UidOf(*known) != UidOf(object)) Remove(key);
  const bool hidden = known && DiffersInVersionAlone(*known, object);
  const ObjectCache::Entry before = cache_.Put(key, std::move(object));
  if (!hidden) Tell({.key = key, .before = before, .after = cache_.Find(key)});
}

void Informer::Impl::Remove(const ObjectKey& key) {
  const ObjectCache::Entry before = cache_.Remove(key);
  if (before) Tell({.key = key, .before = before, .after = nullptr});
}

void Informer::Impl::Tell(const ObjectChange& change) {
  for (const auto& callback : on_change_)
    callback(change);
}

void Informer::Impl::VisitCounters(const CounterVisitor& visitor) const {
  const MetricLabels labels = {{"kind", std::string(options_.resource.kind)}};
  const auto visit = [&](MetricKind kind, std::string_view name, double value) {
    visitor(kind, name, labels, value);
  };
  visit(MetricKind::kGauge, "optcache_informer_objects", static_cast<double>(cache_.size()));
  visit(MetricKind::kGauge, "optcache_informer_synced", synced_ ? 1 : 0);
  visit(MetricKind::kCounter, "optcache_informer_lists_total", static_cast<double>(cycle_.lists()));
  visit(MetricKind::kCounter, "optcache_informer_watches_total",
        static_cast<double>(cycle_.watches()));
  visit(MetricKind::kCounter, "optcache_informer_failures_total",
        static_cast<double>(cycle_.failures()));
  visit(MetricKind::kCounter, "optcache_informer_events_total", static_cast<double>(events_));
}

Informer::Informer(net::EventLoop& loop, const Clock& clock, Client& client,
                   InformerOptions options)
    : impl_(std::make_unique<Impl>(loop, clock, client, std::move(options))) {}
Informer::~Informer() = default;

void Informer::OnChange(ChangeCallback callback) {
  impl_->OnChange(std::move(callback));
}
void Informer::OnSynced(std::function<void()> callback) {
  impl_->OnSynced(std::move(callback));
}
void Informer::Start() {
  impl_->Start();
}
void Informer::Stop() {
  impl_->Stop();
}
bool Informer::synced() const {
  return impl_->synced();
}
MonotonicTime Informer::last_heard() const {
  return impl_->last_heard();
}
const ObjectCache& Informer::cache() const {
  return impl_->cache();
}
const Resource& Informer::resource() const {
  return impl_->resource();
}
void Informer::VisitCounters(const CounterVisitor& visitor) const {
  impl_->VisitCounters(visitor);
}

}  // namespace optcache::kube
