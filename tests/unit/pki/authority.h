#pragma once

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pki/pki.h"

namespace optcache::pki {

inline constexpr std::int64_t kDay = 86'400;
inline constexpr std::int64_t kNow = 1'800'000'000;  // some day in 2027
inline constexpr Validity kYear = {.not_before = kNow - kDay, .not_after = kNow + 365 * kDay};

// The value of a Result that has to have one.
template <typename T>
T Must(Result<T> result) {
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message());
  return std::move(result).value_or(T());
}

struct Authority {
  std::string key = Must(MakeKey());
  std::string certificate = Must(MakeCa(key, "optcache test CA", kYear));

  // A certificate of `subject_key` for a server and client, unless told otherwise.
  std::string Issue(const std::string& subject_key, const std::vector<std::string>& dns_names,
                    Usages usages = {.server = true, .client = true},
                    Validity validity = {.not_before = kNow, .not_after = kNow + kDay}) const {
    return Must(Sign(certificate, key,
                     {.public_key = Must(PublicKeyOf(subject_key)),
                      .dns_names = dns_names,
                      .usages = usages,
                      .validity = validity}));
  }
};

}  // namespace optcache::pki
