#include "config/yaml_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/decimal.h"

namespace optcache::config {
namespace {

template <std::size_t kCount>
bool IsOneOf(const std::array<std::string_view, kCount>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// With a sign in front, perhaps, and a base that YAML 1.1 or 1.2 gives it.
std::optional<std::int64_t> WholeNumberOf(std::string_view word) {
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.remove_prefix(1);
  int base = 10;
  if (word.size() > 1 && word.front() == '0') {
    base = 8;
    const char letter = word[1];
    if (letter == 'x' || letter == 'X') base = 16;
    if (letter == 'b' || letter == 'B') base = 2;
    const bool has_letter = base != 8 || letter == 'o' || letter == 'O';
    if (has_letter) word.remove_prefix(2);
  }
  std::uint64_t size = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, size, base);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (error != std::errc() || rest != end || size > kMost + (negative ? 1 : 0)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? 0 - size : size);
}

std::optional<double> FractionOf(std::string_view word) {
  if (word.starts_with("+-")) return std::nullopt;
  if (word.starts_with('+')) word.remove_prefix(1);
  return ParseDecimal(word);
}

// YAML 1.1 ignores _ in a number. A word that begins with a point keeps it: kubectl reads most of
// these as text.
std::string WithoutUnderscores(const std::string& word) {
  std::string plain = word;
  const bool may_be_number = std::string_view("+-0123456789").contains(word.front());
  if (may_be_number) std::erase(plain, '_');
  return plain;
}

}  // namespace

YamlValue ReadYamlWord(const std::string& word) {
  constexpr auto kNull = std::to_array<std::string_view>({"", "~", "null", "Null", "NULL"});
  constexpr auto kTrue = std::to_array<std::string_view>(
      {"true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"});
  constexpr auto kFalse = std::to_array<std::string_view>(
      {"false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF"});
  if (IsOneOf(kNull, word)) return {};
  if (IsOneOf(kTrue, word)) return {.value = true};
  if (IsOneOf(kFalse, word)) return {.value = false};
  const std::string plain = WithoutUnderscores(word);
  if (const auto number = WholeNumberOf(plain)) return {.value = *number};
  if (const auto number = FractionOf(plain)) return {.value = *number};
  return {.value = word};
}

}  // namespace optcache::config
