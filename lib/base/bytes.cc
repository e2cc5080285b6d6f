#include "base/bytes.h"

#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace optcache {
namespace {

struct Unit {
  std::string_view suffix;
  double factor;
};

constexpr std::array<Unit, 13> kUnits = {{{"", 1.0},
                                          {"Ki", 1024.0},
                                          {"Mi", 1048576.0},
                                          {"Gi", 1073741824.0},
                                          {"Ti", 1099511627776.0},
                                          {"Pi", 1125899906842624.0},
                                          {"Ei", 1152921504606846976.0},
                                          {"k", 1e3},
                                          {"M", 1e6},
                                          {"G", 1e9},
                                          {"T", 1e12},
                                          {"P", 1e15},
                                          {"E", 1e18}}};

}  // namespace

Result<ByteCount> ParseQuantity(std::string_view text) {
  double number = 0;
  const auto [rest, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const std::string_view suffix(rest, static_cast<size_t>(text.data() + text.size() - rest));
  if (error == std::errc() && std::isfinite(number) && number >= 0) {
    for (const Unit& unit : kUnits) {
      if (suffix != unit.suffix) continue;
      const double bytes = std::ceil(number * unit.factor);
      if (bytes < 9.2e18) return static_cast<ByteCount>(bytes);
    }
  }
  return Error(Code::kInvalidArgument,
               fmt::format("'{}' is not a quantity of bytes: write a number with one of the units "
                           "Ki Mi Gi Ti Pi Ei k M G T P E, for example 500Gi",
                           text));
}

std::string FormatBytes(ByteCount bytes) {
  constexpr std::array<std::string_view, 7> kNames = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kNames.size()) {
    value /= 1024.0;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kNames[unit]);
}

std::string FormatSignedBytes(std::int64_t bytes) {
  const auto count = static_cast<ByteCount>(bytes);
  return bytes < 0 ? "-" + FormatBytes(ByteCount{0} - count) : FormatBytes(count);
}

}  // namespace optcache
