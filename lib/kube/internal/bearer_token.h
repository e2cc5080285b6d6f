#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace optcache::kube {

// The token of a ServiceAccount, which the kubelet replaces about every hour. Not thread-safe: a
// value with one owner.
class BearerToken {
 public:
  // `path` empty: there is none.
  BearerToken(std::string path, Duration max_age) : path_(std::move(path)), max_age_(max_age) {}

  // At most max_age old; an old one rather than none while the file cannot be read. Empty if there
  // is none.
  Result<std::string> Get(MonotonicTime now);
  // The server has refused it: the next Get reads the file.
  void Invalidate() { read_at_.reset(); }
  bool present() const { return !path_.empty(); }

 private:
  std::string path_;
  Duration max_age_;
  std::string token_;
  std::optional<MonotonicTime> read_at_;
};

}  // namespace optcache::kube
