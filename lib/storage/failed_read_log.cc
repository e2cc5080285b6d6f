#include "storage/failed_read_log.h"

#include <optional>

#include <fmt/format.h>

#include "base/log.h"

namespace optcache::storage {

void FailedReadLog::Tell(const FailedRead& read) {
  if (read.status.code() == Code::kCancelled) return;
  std::optional<std::uint64_t> not_logged;
  {
    const MutexLock lock(mutex_);
    not_logged = limits_[read.status.code()].Pass(clock_.Now());
  }
  if (!not_logged) return;
  Log(LogLevel::kWarning, "a read of the store failed",
      {{"store", read.store},
       {"object", read.object},
       {"bytes", read.begin < read.end ? fmt::format("{}-{}", read.begin, read.end - 1) : "none"},
       {"attempt", read.attempt},
       {"code", CodeName(read.status.code())},
       {"cause", read.status.message()},
       {"not_logged", *not_logged}});
}

}  // namespace optcache::storage
