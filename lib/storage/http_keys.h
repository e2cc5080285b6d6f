#pragma once

// The keys of a web server, as Kubernetes mounts a Secret: a folder with a file for each.

#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"

namespace optcache::storage {

struct HttpKeys {
  std::string authorization;  // value of the header of that name; empty: none is sent
  std::string ca_file;        // certificates to trust; empty: the folder has none
};

// Of the files `token`, or `username` and `password`, and `ca.crt`; a line's end after them does
// not count. kPermissionDenied: there is none of them, or they contradict each other. No message
// repeats what is in them.
Result<HttpKeys> ReadHttpKeys(const std::string& folder);

// Looks into the folder again every second, as Secrets change under way. Thread-safe.
class HttpKeyFolder {
 public:
  // Looks for the first time. `folder` may be empty: no keys. `clock` outlives it.
  HttpKeyFolder(std::string folder, const Clock& clock);

  Result<HttpKeys> keys();

 private:
  const std::string folder_;
  const Clock& clock_;
  Mutex mutex_;
  MonotonicTime next_ GUARDED_BY(mutex_) = {};
  Result<HttpKeys> keys_ GUARDED_BY(mutex_) = {};
};

}  // namespace optcache::storage
