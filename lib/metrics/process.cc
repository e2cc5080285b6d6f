#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "base/memory_room.h"
#include "metrics/metrics_page.h"

namespace optcache::metrics {
namespace {

double ResidentBytes() {
  // The second number is what is resident, in pages.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/statm", "re"),
                                                             &std::fclose);
  long total = 0;     // NOLINT(google-runtime-int)
  long resident = 0;  // NOLINT(google-runtime-int)
  if (!file || std::fscanf(file.get(), "%ld %ld", &total, &resident) != 2) return 0;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double OpenFiles() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), &::closedir);
  if (!folder) return 0;
  double count = -1;  // the folder itself
  // NOLINTNEXTLINE(concurrency-mt-unsafe): this DIR is ours alone
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] != '.') ++count;
  }
  return count;
}

}  // namespace

void VisitProcess(const CounterVisitor& visitor) {
  visitor(MetricKind::kGauge, "process_resident_memory_bytes", {}, ResidentBytes());
  visitor(MetricKind::kCounter, "process_cpu_seconds_total", {}, CpuSeconds());
  visitor(MetricKind::kGauge, "process_open_fds", {}, OpenFiles());
  if (const auto limit = ControlGroupMemoryLimit())
    visitor(MetricKind::kGauge, "optcache_memory_limit_bytes", {}, static_cast<double>(*limit));
}

}  // namespace optcache::metrics
