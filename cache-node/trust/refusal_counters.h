#pragma once

// What this node refused, by reason: counted always, logged as often as a log bears it.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log_limit.h"

namespace optcache::node {

enum class Refused {
  kToken,        // it is missing, unknown, expired or for another audience
  kReview,       // nobody could say whose token it is
  kPod,          // the token is of another pod than the sidecar says
  kNamespace,    // the dataset is not shared with that namespace
  kStream,       // the stream is not that pod's
  kPut,          // bytes that the manifest's digest refutes
  kManifest,     // a manifest that is none, or of another namespace's dataset
  kCertificate,  // a node's certificate is needed
  kLimit,        // the namespace has as much as it may
};

std::string_view RefusedName(Refused reason);

// Not thread-safe: the event loop owns it.
class RefusalCounters {
 public:
  explicit RefusalCounters(const Clock& clock) : clock_(clock) {}

  // `who` and `why` are for people and hold no token.
  void Note(Refused reason, std::string_view who, std::string_view why);

  std::uint64_t count(Refused reason) const { return kinds_.at(Index(reason)).count; }
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  static constexpr std::size_t kReasons = static_cast<std::size_t>(Refused::kLimit) + 1;
  static std::size_t Index(Refused reason) { return static_cast<std::size_t>(reason); }
  struct Kind {
    std::uint64_t count = 0;
    LogLimit log;
  };

  const Clock& clock_;
  std::array<Kind, kReasons> kinds_{};
};

}  // namespace optcache::node
