#include <charconv>

#include "coordination/codec.h"

namespace optcache::coordination {
namespace {

template <typename Integer>
bool ParseWhole(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string FormatVersion(const Version& version) {
  return std::to_string(version.term) + "." + std::to_string(version.counter);
}

Result<Version> ParseVersion(std::string_view text) {
  const std::size_t dot = text.find('.');
  Version version;
  if (dot == std::string_view::npos || !ParseWhole(text.substr(0, dot), version.term) ||
      !ParseWhole(text.substr(dot + 1), version.counter)) {
    return Error(Code::kInvalidArgument, "\"" + std::string(text.substr(0, 64)) +
                                             "\" is no version, allowed: TERM.COUNTER, as 0.17");
  }
  return version;
}

std::string_view RetentionName(Retention retention) {
  switch (retention) {
    case Retention::kOptimal:
      return "optimal";
    case Retention::kPin:
      return "pin";
    case Retention::kLru:
      return "lru";
    case Retention::kNone:
      return "none";
  }
  return "optimal";
}

std::string_view ObjectiveName(Objective objective) {
  return objective == Objective::kBytes ? "bytes" : "requests";
}

}  // namespace optcache::coordination
