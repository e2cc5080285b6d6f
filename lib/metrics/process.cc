#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
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

// Of the process's control group (version 2): its container's. Nothing if there is none.
std::optional<double> MemoryLimit() {
  constexpr ByteCount kSmallFile = 64_KiB;
  constexpr std::string_view kVersion2 = "0::";
  const Result<std::string> groups = ReadFile("/proc/self/cgroup", kSmallFile);
  const std::size_t at = groups ? groups->find(kVersion2) : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = at + kVersion2.size();
  const Result<std::string> limit = ReadFile(
      "/sys/fs/cgroup" + groups->substr(begin, groups->find('\n', begin) - begin) + "/memory.max",
      kSmallFile);
  std::uint64_t bytes = 0;  // "max" is no number.
  if (!limit ||
      std::from_chars(limit->data(), limit->data() + limit->size(), bytes).ec != std::errc{}) {
    return std::nullopt;
  }
  return static_cast<double>(bytes);
}

}  // namespace

void VisitProcess(const CounterVisitor& visitor) {
  visitor(MetricKind::kGauge, "process_resident_memory_bytes", {}, ResidentBytes());
  visitor(MetricKind::kCounter, "process_cpu_seconds_total", {}, CpuSeconds());
  visitor(MetricKind::kGauge, "process_open_fds", {}, OpenFiles());
  if (const auto limit = MemoryLimit())
    visitor(MetricKind::kGauge, "optcache_memory_limit_bytes", {}, *limit);
}

}  // namespace optcache::metrics
