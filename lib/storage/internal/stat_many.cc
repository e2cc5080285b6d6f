#include "storage/internal/stat_many.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "storage/internal/first_error.h"

namespace optcache::storage::internal {
namespace {

constexpr size_t kReportStep = 256;

}  // namespace

Status StatMany(ObjectStore& store, const StatManyOptions& options,
                const std::function<std::string(size_t index)>& path_of,
                const std::function<void(size_t index, Result<ObjectInfo>)>& take,
                const std::function<void(size_t done)>& report) {
  std::atomic<size_t> next = 0;
  FirstError error;
  const auto work = [&] {
    while (!error.any()) {
      const size_t index = next++;
      if (index >= options.count) return;
      Result<ObjectInfo> info = store.Stat(path_of(index), options.deadline);
      if (!info && info.error().code() != Code::kNotFound) {
        error.Set(std::move(info).error());
        return;
      }
      take(index, std::move(info));
      if ((index + 1) % kReportStep == 0 || index + 1 == options.count) report(index + 1);
    }
  };
  {
    std::vector<std::jthread> threads;
    const size_t count = std::min<size_t>(std::max(options.concurrent_max, 1U), options.count);
    for (size_t i = 0; i < count; ++i)
      threads.emplace_back(work);
  }
  return error.Take();
}

}  // namespace optcache::storage::internal
