#pragma once

// What tests of keys for buckets share.

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "storage/s3_credentials.h"

namespace optcache {

// 1.7e9 seconds since 1970 are 2023-11-14T22:13:20Z. Only that moves; deadlines follow the
// machine's clock, since a real transfer waits for them.
class ClockOnTheWall final : public Clock {
 public:
  MonotonicTime Now() const override { return SystemClock().Now(); }
  double UnixSeconds() const override { return 1.7e9 + passed_; }
  void Pass(double seconds) { passed_ = passed_ + seconds; }

 private:
  std::atomic<double> passed_ = 0;
};

inline storage::Environment EnvironmentOf(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

// What Get gives in the end, and whether at once.
inline std::pair<Result<storage::S3Credentials>, bool> KeysOf(storage::S3CredentialSource& source) {
  const auto ended = std::make_shared<std::promise<Result<storage::S3Credentials>>>();
  storage::S3CredentialsCallback later = [ended](Result<storage::S3Credentials> keys) {
    ended->set_value(std::move(keys));
  };
  auto now = source.Get(later);
  if (!now) return {Error(now.error()), true};
  if (*now) return {**now, true};
  return {ended->get_future().get(), false};
}

}  // namespace optcache
