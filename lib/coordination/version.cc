#include <algorithm>

#include "base/whole_number.h"
#include "coordination/codec.h"

namespace optcache::coordination {

std::string FormatVersion(const Version& version) {
  return std::to_string(version.term) + "." + std::to_string(version.counter);
}

Result<Version> ParseVersion(std::string_view text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  const auto term = ParseWholeNumber<std::uint32_t>(text.substr(0, dot));
  const auto counter = ParseWholeNumber<std::uint64_t>(text.substr(std::min(dot + 1, text.size())));
  if (!term || !counter) {
    return Error(Code::kInvalidArgument, "\"" + std::string(text.substr(0, 64)) +
                                             "\" is no version, allowed: TERM.COUNTER, as 0.17");
  }
  return Version{.term = *term, .counter = *counter};
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
