#pragma once

// Runs kubectl, which knows clusters, credentials and proxies better than we could.

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"

namespace optcache::cli {

struct KubectlOptions {
  std::string program = "kubectl";
  std::string context;     // empty: kubectl's own choice
  std::string kubeconfig;  // empty: kubectl's own choice
  Duration timeout = std::chrono::seconds(20);
  ByteCount max_output = 256_MiB;
};

// A value. Each call waits for the end of one kubectl.
class Kubectl {
 public:
  explicit Kubectl(KubectlOptions options) : options_(std::move(options)) {}

  // What it prints, with `input` at its standard input. kNotFound: there is no kubectl, or no such
  // object; kPermissionDenied: the cluster forbids it; kDeadlineExceeded, kResourceExhausted: see
  // the options; kUnavailable: it failed, with what it said.
  Result<std::string> Run(const std::vector<std::string>& arguments,
                          std::string_view input = {}) const;

 private:
  KubectlOptions options_;
};

}  // namespace optcache::cli
