#pragma once

// Which Events to write, and when: repetitions are one Event whose series counts, and an object
// that has too much to say is cut short. Pure: time is an argument.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "kube/object.h"

namespace optcache::kube {

enum class EventType { kNormal, kWarning };

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string ns;
  std::string name;
  std::string uid;
  auto operator<=>(const ObjectReference&) const = default;
};
ObjectReference ReferenceTo(const Resource& resource, const Json& object);

struct EventText {
  EventType type = EventType::kNormal;
  std::string reason;  // CamelCase: "SourceUnreachable"
  std::string action;  // what was tried: "Index"
  std::string note;    // a sentence for people; cut at 1,024 bytes
};

struct EventSeriesOptions {
  // A repetition is written at most so often; the waits double up to the limit.
  Duration update_first = std::chrono::seconds(10);
  Duration update_limit = std::chrono::minutes(6);
  // A series that is silent for this long has ended: the next is a new Event.
  Duration series_end = std::chrono::minutes(6);
  // Of one object: this many at once, then one a period.
  std::uint32_t burst = 25;
  Duration refill = std::chrono::minutes(5);
  std::size_t max_series = 4096;
};

// What to send: a new Event, or that one has happened again.
struct EventWrite {
  std::uint64_t series = 0;  // which; stays the same over its updates
  ObjectReference regarding;
  EventText text;
  std::uint32_t count = 1;  // 1: create it
  double first_seconds = 0;
  double last_seconds = 0;
};

// Not thread-safe: a value with one owner.
class EventSeries {
 public:
  explicit EventSeries(EventSeriesOptions options) : options_(options) {}

  // What to write now, if anything.
  std::optional<EventWrite> Record(const ObjectReference& regarding, const EventText& text,
                                   MonotonicTime now, double unix_seconds);
  // Counts whose time to be written has come.
  std::vector<EventWrite> TakeDue(MonotonicTime now);
  std::optional<MonotonicTime> NextDue() const;
  // The Event of this series is gone or was never written: its next repetition is a new one.
  void Forget(std::uint64_t series);

  std::uint64_t suppressed() const { return suppressed_; }
  std::size_t size() const { return series_.size(); }

 private:
  struct SeriesKey {
    ObjectReference regarding;
    EventType type = EventType::kNormal;
    std::string reason;
    std::string action;
    std::string note;
    auto operator<=>(const SeriesKey&) const = default;
  };
  struct Series {
    EventWrite write;
    MonotonicTime last_seen;
    Duration wait{};
    std::optional<MonotonicTime> due;
  };
  struct Allowance {
    double tokens = 0;
    MonotonicTime at;
  };

  bool Allow(const ObjectReference& regarding, MonotonicTime now);
  void MakeRoom(MonotonicTime now);

  const EventSeriesOptions options_;
  std::map<SeriesKey, Series> series_;
  std::map<ObjectReference, Allowance> allowances_;
  std::uint64_t last_id_ = 0;
  std::uint64_t suppressed_ = 0;
};

}  // namespace optcache::kube
