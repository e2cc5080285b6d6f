#pragma once

// Whose token is this? Asks the API server once for each token and remembers the answer for a
// while. Pure but for the reviewer, which is an interface.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "dataset/digest.h"
#include "net/peer.h"

namespace optcache::node {

// A pod, as its token proves it.
struct Caller {
  std::string name_space;
  std::string service_account;
  std::string pod;      // empty: the token is bound to no pod
  std::string pod_uid;  // likewise
  std::string machine;  // where that pod runs; empty: the API server does not say
  friend bool operator==(const Caller&, const Caller&) = default;
};

// "namespace/pod", or "namespace/serviceaccount" for a token of no pod; for logs.
std::string NameOf(const Caller& caller);

// What a TokenReview says of a token that is good.
struct ReviewedToken {
  std::string username;                                   // "system:serviceaccount:NAMESPACE:NAME"
  std::map<std::string, std::vector<std::string>> extra;  // "authentication.kubernetes.io/..."
};

// kPermissionDenied: the user is no ServiceAccount.
Result<Caller> CallerOf(const ReviewedToken& token);

// When a token expires by its own words, in Unix seconds; nothing if it does not say, or is no JWT.
// Believed only of tokens that the API server has found good.
std::optional<double> ExpiryOf(std::string_view token);

class TokenReviewer {
 public:
  // kPermissionDenied: the API server does not take this token, for our audience; other errors: it
  // could not be asked.
  using Done = std::function<void(Result<ReviewedToken>)>;
  virtual ~TokenReviewer() = default;
  // Calls `done` once, within a deadline, never from within.
  virtual void Review(const std::string& token, Done done) = 0;
};

struct TokenCheckLimits {
  Duration remember_good = std::chrono::minutes(5);  // at most; never past the token's expiry
  Duration remember_bad = std::chrono::seconds(10);  // so that a stubborn client costs little
  std::size_t remembered = 8192;                     // tokens
  std::size_t reviews = 64;                          // at a time
  std::size_t waiting_per_review = 64;
  // Of one address: who shows one bad token after another takes the places of few others.
  std::size_t waiting_per_peer = 8;
};

// Not thread-safe: the event loop owns it. Tokens are remembered by their SHA-256 alone.
class TokenCheck {
 public:
  // `until`: a good answer is good for this long, then it is to be asked for again.
  using Done = std::function<void(const Result<Caller>&, MonotonicTime until)>;

  // `reviewer` outlives this, and calls nobody back after its own end.
  TokenCheck(TokenReviewer& reviewer, const Clock& clock, TokenCheckLimits limits = {})
      : reviewer_(reviewer), clock_(clock), limits_(limits) {}

  // Calls `done` once, perhaps from within. kPermissionDenied: the token is not good;
  // kUnavailable: nobody could say; kResourceExhausted: too many wait, of all or of this peer.
  void Check(const std::string& token, const net::PeerInfo& peer, Done done);

  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  struct Known {
    Result<Caller> caller;
    MonotonicTime until;
  };
  struct Waiting {
    std::string host;
    Done done;
  };
  bool HasRoom(const dataset::Digest& key, const std::string& host) const;
  void OnReviewed(const dataset::Digest& key, std::optional<double> expiry,
                  const Result<ReviewedToken>& reviewed);
  MonotonicTime Remember(const dataset::Digest& key, const Result<Caller>& caller,
                         std::optional<double> expiry);

  TokenReviewer& reviewer_;
  const Clock& clock_;
  TokenCheckLimits limits_;
  std::map<dataset::Digest, Known> known_;
  std::map<dataset::Digest, std::vector<Waiting>> waiting_;  // one review each
  std::map<std::string, std::size_t> waiting_of_;            // by host; none is 0
  std::uint64_t from_memory_ = 0;
  std::uint64_t good_ = 0;
  std::uint64_t bad_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace optcache::node
