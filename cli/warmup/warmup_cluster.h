#pragma once

// Makes a Warmup in a cluster, and follows it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"
#include "cli/cluster/kubectl.h"

namespace optcache::cli {

struct ClusterWarmup {
  std::string dataset;
  std::string name;             // of the Warmup; empty: the API server gives it one
  std::string name_space;       // empty: kubectl's own
  std::string bandwidth;        // as the user wrote it; empty: no limit
  std::optional<Duration> ttl;  // after its end; nothing: it stays
  bool on_indexed = false;      // again with each list of samples
  bool wait = false;            // until it has ended
  Duration timeout{};           // of waiting; 0: none
  Duration interval = std::chrono::seconds(2);
  std::string output = "text";
};

// A Warmup as its status says.
struct WarmupView {
  enum class Stage : std::uint8_t { kUnderWay, kComplete, kFailed };
  std::string name;
  std::string dataset;
  Stage stage = Stage::kUnderWay;
  int percent = 0;
  ByteCount bytes = 0;
  ByteCount total_bytes = 0;
  std::string reason;
  std::string message;
  friend bool operator==(const WarmupView&, const WarmupView&) = default;
};

// The object to be created, as JSON.
std::string WarmupObject(const ClusterWarmup& warmup);
// Of a Warmup as the API server answers. kInvalidArgument: it is none.
Result<WarmupView> ReadWarmupView(std::string_view object);
// "images  [############--------]  60 %  6 GiB of 10 GiB  Warming", on one line.
std::string WarmupLine(const WarmupView& view);

// Creates it; if it is to wait, tells on `fd` how far it is until it has ended. kUnavailable: it
// has failed, with its sentence; kDeadlineExceeded: `timeout` is over, and it goes on.
Status WarmInCluster(const Kubectl& kubectl, const ClusterWarmup& warmup, int fd);

}  // namespace optcache::cli
