#include "storage/wait_table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace optcache::storage {

void WaitTable::Note(const void* who, MonotonicTime since, std::string cause) {
  waiting_.insert_or_assign(who, Entry{.since = since, .cause = std::move(cause)});
}

const WaitTable::Entry* WaitTable::Longest() const {
  const auto longest = std::ranges::min_element(
      waiting_, {}, [](const auto& waiting) { return waiting.second.since; });
  return longest == waiting_.end() ? nullptr : &longest->second;
}

StoreWaits WaitTable::At(MonotonicTime now) const {
  const Entry* const longest = Longest();
  if (longest == nullptr) return {};
  return {.requests = waiting_.size(),
          .longest = std::max<Duration>(now - longest->since, Duration::zero()),
          .cause = longest->cause};
}

std::optional<StoreWaits> WaitTable::Tell(MonotonicTime now) {
  if (now < tell_at()) return std::nullopt;
  const MonotonicTime due = Longest()->since + kTellEvery;
  quiet_until_ = due > now ? due : now + kTellEvery;
  if (due > now) return std::nullopt;
  return At(now);
}

void LogStoreWaits(const std::string& store, const StoreWaits& waits, Duration patience) {
  Log(LogLevel::kWarning, "waiting for the store",
      {{"store", store},
       {"requests", waits.requests},
       {"for_s", fmt::format("{:.0f}", ToSeconds(waits.longest))},
       {"patience_s", fmt::format("{:g}", ToSeconds(patience))},
       {"cause", waits.cause}});
}

}  // namespace optcache::storage
