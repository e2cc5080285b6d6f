#pragma once

// What a store takes for what it is asked for: `spec.cost`, in whatever currency the user counts.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace optcache::dataset {

struct StorePrice {
  double per_request = 0;  // 0: requests cost nothing, or that is not known
  double per_gib = 0;      // of what it sends, likewise

  friend bool operator==(const StorePrice&, const StorePrice&) = default;
};

// Requests of a store, and the bytes that it sends for them. Below 0 in a difference of two.
struct StoreTraffic {
  std::int64_t requests = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const StoreTraffic&, const StoreTraffic&) = default;
};

// What the store takes for that traffic. Nothing: no price is known.
std::optional<double> CostOf(const StorePrice& price, const StoreTraffic& traffic);

inline constexpr double kPriceMax = 1'000'000;
inline constexpr std::size_t kPriceCharactersMax = 32;

// "0.0000004": a decimal number above 0. kInvalidArgument says what is allowed.
Result<double> ParsePrice(std::string_view text);
// As ParsePrice reads it: without an exponent.
std::string FormatPrice(double price);
// For people: "8.36", and "0.000012" of less than 1.
std::string FormatMoney(double money);

}  // namespace optcache::dataset
