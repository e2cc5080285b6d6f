#include "config/yaml_value.h"

#include <algorithm>
#include <array>
#include <charconv>
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
  if (word.starts_with("0x") || word.starts_with("0o") || word.starts_with("0b")) {
    base = word[1] == 'x' ? 16 : word[1] == 'o' ? 8 : 2;
    word.remove_prefix(2);
  } else if (word.size() > 1 && word.front() == '0') {
    base = 8;
  }
  if (word.starts_with('-')) return std::nullopt;
  std::int64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, number, base);
  if (error != std::errc() || rest != end) return std::nullopt;
  return negative ? -number : number;
}

std::optional<double> FractionOf(std::string_view word) {
  if (word.starts_with("+-")) return std::nullopt;
  if (word.starts_with('+')) word.remove_prefix(1);
  return ParseDecimal(word);
}

}  // namespace

YamlValue ReadYamlWord(const std::string& word) {
  constexpr auto kNull = std::to_array<std::string_view>({"", "~", "null", "Null", "NULL"});
  constexpr auto kTrue = std::to_array<std::string_view>(
      {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"});
  constexpr auto kFalse = std::to_array<std::string_view>(
      {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"});
  if (IsOneOf(kNull, word)) return {};
  if (IsOneOf(kTrue, word)) return {.value = true};
  if (IsOneOf(kFalse, word)) return {.value = false};
  if (const auto number = WholeNumberOf(word)) return {.value = *number};
  if (const auto number = FractionOf(word)) return {.value = *number};
  return {.value = word};
}

}  // namespace optcache::config
