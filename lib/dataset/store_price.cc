#include "dataset/store_price.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/bytes.h"

namespace optcache::dataset {
namespace {

constexpr std::size_t kFormattedMax = 64;  // a price with all its digits takes fewer

bool AreDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsDecimal(std::string_view text) {
  const std::size_t point = text.find('.');
  return AreDigits(text.substr(0, point)) &&
         (point == std::string_view::npos || AreDigits(text.substr(point + 1)));
}

}  // namespace

std::optional<double> CostOf(const StorePrice& price, const StoreTraffic& traffic) {
  if (price == StorePrice{}) return std::nullopt;
  return price.per_request * static_cast<double>(traffic.requests) +
         price.per_gib * static_cast<double>(traffic.bytes) / static_cast<double>(1_GiB);
}

Result<double> ParsePrice(std::string_view text) {
  double price = 0;
  if (text.size() <= kPriceCharactersMax && IsDecimal(text))
    std::from_chars(text.data(), text.data() + text.size(), price, std::chars_format::fixed);
  if (!(price > 0) || price > kPriceMax) {
    return Error(Code::kInvalidArgument,
                 "'" + std::string(text) +
                     "', allowed: a decimal number above 0, at most 1000000 and of at most 32 "
                     "characters, in quotes, for example \"0.0000004\"");
  }
  return price;
}

std::string FormatPrice(double price) {
  std::array<char, kFormattedMax> text{};
  return {
      text.data(),
      std::to_chars(text.data(), text.data() + text.size(), price, std::chars_format::fixed).ptr};
}

std::string FormatMoney(double money) {
  const bool small = money != 0 && std::abs(money) < 1;
  return small ? fmt::format("{:.6f}", money) : fmt::format("{:.2f}", money);
}

}  // namespace optcache::dataset
