// Answers whose token it is from memory, or joins the review that is under way, or begins one.
//
// `known_` has the answers and `waiting_` the reviews under way, both by the token's SHA-256. So
// many clients with one token cost one review. Good answers are remembered for minutes, and never
// past the token's expiry. Bad ones are remembered for seconds. If the API server could not be
// asked, nothing is remembered. All of it is bounded: reviews at a time, those who wait for each,
// those of one address, and answers. When the memory is full, answers that have run out go first,
// then bad ones.

#include "cache-node/trust/token_check.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

namespace optcache::node {
namespace {

constexpr std::string_view kAccountPrefix = "system:serviceaccount:";
constexpr std::size_t kMaxClaims = 4096;

// Base64 for URLs without padding; nothing if it is not.
std::optional<std::string> DecodeBase64Url(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned have = 0;
  for (const char c : text) {
    std::uint32_t value = 0;
    if (c >= 'A' && c <= 'Z') {
      value = static_cast<std::uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      value = static_cast<std::uint32_t>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      value = static_cast<std::uint32_t>(c - '0') + 52;
    } else if (c == '-' || c == '_') {
      value = c == '-' ? 62 : 63;
    } else {
      return std::nullopt;
    }
    bits = (bits << 6U) | value;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes.push_back(static_cast<char>((bits >> have) & 0xffU));
  }
  return bytes;
}

// "10.0.0.7" of "10.0.0.7:4123": all connections of a pod.
std::string PeerHost(const net::PeerInfo& peer) {
  return peer.address.substr(0, peer.address.rfind(':'));
}

std::string First(const ReviewedToken& token, const std::string& key) {
  const auto found = token.extra.find("authentication.kubernetes.io/" + key);
  return found == token.extra.end() || found->second.empty() ? "" : found->second.front();
}

}  // namespace

std::string NameOf(const Caller& caller) {
  return caller.name_space + "/" + (caller.pod.empty() ? caller.service_account : caller.pod);
}

Result<Caller> CallerOf(const ReviewedToken& token) {
  std::string_view user = token.username;
  const bool is_account = user.starts_with(kAccountPrefix);
  if (is_account) user.remove_prefix(kAccountPrefix.size());
  const std::size_t colon = user.find(':');
  if (!is_account || colon == std::string_view::npos || colon == 0 || colon + 1 == user.size()) {
    return Error(Code::kPermissionDenied,
                 "the token is of user '" + token.username + "', which is no ServiceAccount");
  }
  return Caller{.name_space = std::string(user.substr(0, colon)),
                .service_account = std::string(user.substr(colon + 1)),
                .pod = First(token, "pod-name"),
                .pod_uid = First(token, "pod-uid"),
                .machine = First(token, "node-name")};
}

std::optional<double> ExpiryOf(std::string_view token) {
  const std::size_t begin = token.find('.');
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = token.find('.', begin + 1);
  if (end == std::string_view::npos || end - begin > kMaxClaims) return std::nullopt;
  const auto claims = DecodeBase64Url(token.substr(begin + 1, end - begin - 1));
  if (!claims) return std::nullopt;
  const auto json = nlohmann::json::parse(*claims, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto expiry = json.find("exp");
  if (expiry == json.end() || !expiry->is_number()) return std::nullopt;
  return expiry->get<double>();
}

bool TokenCheck::HasRoom(const dataset::Digest& key, const std::string& host) const {
  const auto of_peer = waiting_of_.find(host);
  if (of_peer != waiting_of_.end() && of_peer->second >= limits_.waiting_per_peer) return false;
  const auto review = waiting_.find(key);
  if (review == waiting_.end()) return waiting_.size() < limits_.reviews;
  return review->second.size() < limits_.waiting_per_review;
}

void TokenCheck::Check(const std::string& token, const net::PeerInfo& peer, Done done) {
  if (token.empty()) {
    ++bad_;
    return done(Error(Code::kPermissionDenied, "a token is needed here, and there is none"), {});
  }
  const dataset::Digest key = dataset::Sha256Of(AsBytes(token));
  if (const auto known = known_.find(key); known != known_.end()) {
    if (clock_.Now() < known->second.until) {
      ++from_memory_;
      return done(known->second.caller, known->second.until);
    }
    known_.erase(known);
  }
  std::string host = PeerHost(peer);
  if (!HasRoom(key, host)) {
    ++failed_;
    return done(Error(Code::kResourceExhausted, "too many tokens wait to be reviewed"), {});
  }
  ++waiting_of_[host];
  std::vector<Waiting>& waiting = waiting_[key];
  waiting.push_back({.host = std::move(host), .done = std::move(done)});
  if (waiting.size() > 1) return;  // that review is under way
  reviewer_.Review(token,
                   [this, key, expiry = ExpiryOf(token)](const Result<ReviewedToken>& reviewed) {
                     OnReviewed(key, expiry, reviewed);
                   });
}

void TokenCheck::OnReviewed(const dataset::Digest& key, std::optional<double> expiry,
                            const Result<ReviewedToken>& reviewed) {
  const auto waiting = waiting_.extract(key);
  const Result<Caller> caller =
      reviewed ? CallerOf(*reviewed) : Result<Caller>(Error(reviewed.error()));
  if (caller) {
    ++good_;
  } else {
    ++(caller.error().code() == Code::kPermissionDenied ? bad_ : failed_);
  }
  const MonotonicTime until = Remember(key, caller, expiry);
  for (const Waiting& one : waiting.mapped()) {
    const auto of_peer = waiting_of_.find(one.host);
    if (--of_peer->second == 0) waiting_of_.erase(of_peer);
  }
  for (const Waiting& one : waiting.mapped())
    one.done(caller, until);
}

// What could not be found out is asked again at once.
MonotonicTime TokenCheck::Remember(const dataset::Digest& key, const Result<Caller>& caller,
                                   std::optional<double> expiry) {
  const MonotonicTime now = clock_.Now();
  if (!caller && caller.error().code() != Code::kPermissionDenied) return now;
  if (known_.size() >= limits_.remembered) {
    std::erase_if(known_, [now](const auto& one) { return now >= one.second.until; });
  }
  // Who shows one bad token after another drives out no good one.
  if (known_.size() >= limits_.remembered) {
    std::erase_if(known_, [](const auto& one) { return !one.second.caller; });
  }
  if (known_.size() >= limits_.remembered) known_.erase(known_.begin());
  Duration keep = caller ? limits_.remember_good : limits_.remember_bad;
  if (caller && expiry) {
    const double left = std::clamp(*expiry - clock_.UnixSeconds(), 0.0, 1e6);
    keep = std::min<Duration>(keep, FromSeconds(left));
  }
  known_.insert_or_assign(key, Known{.caller = caller, .until = now + keep});
  return now + keep;
}

void TokenCheck::VisitCounters(const CounterVisitor& visitor) const {
  const auto count = [&](const char* result, std::uint64_t number) {
    visitor(MetricKind::kCounter, "optcache_token_checks_total", {{"result", result}},
            static_cast<double>(number));
  };
  count("remembered", from_memory_);
  count("good", good_);
  count("bad", bad_);
  count("failed", failed_);
}

}  // namespace optcache::node
