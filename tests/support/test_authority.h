#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "net/tls.h"
#include "pki/pki.h"

namespace optcache {

// A certificate authority of a test, valid for an hour around now. A value. Link pki.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test CA")
      : certificate_(Must(pki::MakeCa(key_, name, Around(0)))) {}

  const std::string& certificate() const { return certificate_; }
  const std::string& key() const { return key_; }

  // A new key and its certificate, with this CA to trust. `shift_seconds` moves the hour of its
  // validity, at most to the CA's end.
  net::TlsMaterial Issue(const std::vector<std::string>& dns_names,
                         pki::Usages usages = {.server = true, .client = true},
                         std::int64_t shift_seconds = -60) const {
    const std::string key = Must(pki::MakeKey());
    const pki::Leaf leaf = {.public_key = Must(pki::PublicKeyOf(key)),
                            .dns_names = dns_names,
                            .usages = usages,
                            .validity = Around(shift_seconds)};
    return {.chain = Must(pki::Sign(certificate_, key_, leaf)), .key = key, .trust = certificate_};
  }

 private:
  static constexpr std::int64_t kHalfAnHour = 1800;

  static pki::Validity Around(std::int64_t shift_seconds) {
    const auto now = static_cast<std::int64_t>(SystemClock().UnixSeconds()) + shift_seconds;
    return {.not_before = now - kHalfAnHour, .not_after = now + kHalfAnHour};
  }
  static std::string Must(Result<std::string> made) {
    CHECK(made.has_value());
    return *std::move(made);
  }

  std::string key_ = Must(pki::MakeKey());
  std::string certificate_;
};

}  // namespace optcache
