// Writes Kubernetes Events: texts are cut, repetitions counted, and failures forgotten.
//
//   Record ─► EventSeries: write it now, later, or not ─► Write ─► Apply ─► OnWritten
//
// The idea: Events are for people and must cost little. EventSeries, which is pure, joins
// repetitions to a series. Server-side apply makes the Event or raises its count, whichever is
// needed, so nothing must be read before.
//
// Invariants: one write of a series is under way; a newer one waits in `writing_` and replaces an
// older one that waits. At most kMaxOutstanding are under way; what is beyond, or fails, is dropped
// and its series forgotten, so that its next text begins a new one. The name ends with a hash of
// the replica, the series and the time at which it began, so two series do not write to one Event.

#include "kube/events.h"

#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/callback_guard.h"
#include "base/log.h"
#include "base/random.h"
#include "base/time_text.h"
#include "base/utf8.h"

namespace optcache::kube {
namespace {

constexpr std::size_t kMaxNoteBytes = 1024;
constexpr std::size_t kMaxReasonBytes = 128;
constexpr std::size_t kMaxNameBytes = 253;
constexpr std::size_t kMaxOutstanding = 256;  // requests that have not ended

Json ToJson(const ObjectReference& reference) {
  Json json = {{"apiVersion", reference.api_version},
               {"kind", reference.kind},
               {"name", reference.name},
               {"uid", reference.uid}};
  if (!reference.ns.empty()) json["namespace"] = reference.ns;
  return json;
}

}  // namespace

class EventRecorder::Impl {
 public:
  Impl(net::EventLoop& loop, const Clock& clock, Client& client, EventRecorderOptions options)
      : loop_(loop),
        clock_(clock),
        client_(client),
        options_(std::move(options)),
        series_(options_.series) {}

  void Record(const ObjectReference& regarding, const EventText& text);
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  void Write(const EventWrite& write);
  void OnWritten(const EventWrite& write, const ApiResult<Json>& result);
  void Schedule();
  Json ToEvent(const EventWrite& write) const;

  net::EventLoop& loop_;
  const Clock& clock_;
  Client& client_;
  const EventRecorderOptions options_;
  EventSeries series_;
  net::Timer timer_;
  // Series that are being written, with what is to be said of them after that.
  std::map<std::uint64_t, std::optional<EventWrite>> writing_;
  std::uint64_t written_ = 0;
  std::uint64_t failed_ = 0;
  CallbackGuard guard_;  // last
};

void EventRecorder::Impl::Record(const ObjectReference& regarding, const EventText& text) {
  EventText cut = text;
  cut.note = CutText(std::move(cut.note), kMaxNoteBytes);
  cut.reason = CutText(std::move(cut.reason), kMaxReasonBytes);
  cut.action = CutText(std::move(cut.action), kMaxReasonBytes);
  const auto write = series_.Record(regarding, cut, clock_.Now(), clock_.UnixSeconds());
  if (write) Write(*write);
  Schedule();
}

void EventRecorder::Impl::Schedule() {
  const auto due = series_.NextDue();
  if (!due) return timer_.Cancel();
  const Duration wait = std::max<Duration>(*due - clock_.Now(), Duration::zero());
  timer_ = loop_.After(wait, [this] {
    for (const EventWrite& write : series_.TakeDue(clock_.Now()))
      Write(write);
    Schedule();
  });
}

// Server-side apply makes the Event if it is not there (any more) and counts it if it is. One write
// of a series at a time: the first that overtook the second would take its count away.
void EventRecorder::Impl::Write(const EventWrite& write) {
  if (const auto busy = writing_.find(write.series); busy != writing_.end()) {
    busy->second = write;
    return;
  }
  if (writing_.size() >= kMaxOutstanding) {
    ++failed_;
    return series_.Forget(write.series);
  }
  writing_.emplace(write.series, std::nullopt);
  client_.Apply(
      kEvents, ToEvent(write), {.field_manager = options_.controller},
      guard_.Wrap([this, write](const ApiResult<Json>& result) { OnWritten(write, result); }));
}

void EventRecorder::Impl::OnWritten(const EventWrite& write, const ApiResult<Json>& result) {
  const std::optional<EventWrite> next = writing_.extract(write.series).mapped();
  if (result) {
    ++written_;
    if (next) Write(*next);
    return;
  }
  ++failed_;
  series_.Forget(write.series);
  Log(LogLevel::kDebug, "cannot write an event",
      {{"about", write.regarding.name}, {"error", result.error().status.ToString()}});
}

Json EventRecorder::Impl::ToEvent(const EventWrite& write) const {
  // Of the replica, the time at which the series began, and its number, which begins again with
  // each start of the replica.
  const std::string suffix =
      fmt::format(".{:016x}", Random::Mix(std::hash<std::string>()(options_.instance) ^
                                          static_cast<std::uint64_t>(write.first_seconds * 1e6) ^
                                          Random::Mix(write.series)));
  const std::string name = CutText(write.regarding.name, kMaxNameBytes - suffix.size()) + suffix;
  const std::string ns = write.regarding.ns.empty() ? "default" : write.regarding.ns;
  Json event = MakeObject(kEvents, {.ns = ns, .name = name});
  event["eventTime"] = FormatMicroTime(write.first_seconds);
  event["type"] = write.text.type == EventType::kWarning ? "Warning" : "Normal";
  event["reason"] = write.text.reason;
  event["action"] = write.text.action;
  event["note"] = write.text.note;
  event["regarding"] = ToJson(write.regarding);
  event["reportingController"] = options_.controller;
  event["reportingInstance"] = options_.instance;
  if (write.count > 1) {
    event["series"] = {{"count", write.count},
                       {"lastObservedTime", FormatMicroTime(write.last_seconds)}};
  }
  return event;
}

void EventRecorder::Impl::VisitCounters(const CounterVisitor& visitor) const {
  const auto count = [&](const char* result, std::uint64_t value) {
    visitor(MetricKind::kCounter, "optcache_events_total", {{"result", result}},
            static_cast<double>(value));
  };
  count("written", written_);
  count("failed", failed_);
  count("suppressed", series_.suppressed());
}

EventRecorder::EventRecorder(net::EventLoop& loop, const Clock& clock, Client& client,
                             EventRecorderOptions options)
    : impl_(std::make_unique<Impl>(loop, clock, client, std::move(options))) {}
EventRecorder::~EventRecorder() = default;

void EventRecorder::Record(const ObjectReference& regarding, const EventText& text) {
  impl_->Record(regarding, text);
}
void EventRecorder::VisitCounters(const CounterVisitor& visitor) const {
  impl_->VisitCounters(visitor);
}

}  // namespace optcache::kube
