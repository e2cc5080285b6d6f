#include "headspace/options.h"

#include <set>

#include <fmt/format.h>

#include "base/whole_number.h"

namespace optcache::headspace {
namespace {

constexpr const char* kExample =
    "write true, or some of steps=200,free-steps=200,warmup-steps=50,run-steps=90000";

Result<std::uint64_t> ParseNumber(std::string_view name, std::string_view text, std::uint64_t min,
                                  std::uint64_t max) {
  const auto number = ParseWholeNumber<std::uint64_t>(text, max);
  if (number && *number >= min) return *number;
  return Error(Code::kInvalidArgument,
               fmt::format("{}='{}' is no whole number from {} to {}", name, text, min, max));
}

Status SetOption(std::string_view name, std::string_view value, Options& options) {
  if (name == "run-steps") {
    ASSIGN_OR_RETURN(options.run_steps, ParseNumber(name, value, 1, kRunStepsMax));
    return OkStatus();
  }
  std::uint32_t* const wanted = name == "steps"          ? &options.steps
                                : name == "free-steps"   ? &options.free_steps
                                : name == "warmup-steps" ? &options.warmup_steps
                                                         : nullptr;
  if (wanted == nullptr) {
    return {Code::kInvalidArgument, fmt::format("'{}' is not known; {}", name, kExample)};
  }
  const std::uint64_t min = wanted == &options.warmup_steps ? 0 : kStepsMin;
  ASSIGN_OR_RETURN(const std::uint64_t number, ParseNumber(name, value, min, kStepsMax));
  *wanted = static_cast<std::uint32_t>(number);
  return OkStatus();
}

}  // namespace

Result<Options> ParseOptions(std::string_view text) {
  Options options;
  if (text == "true") return options;
  std::set<std::string_view> seen;
  for (bool last = false; !last;) {
    const std::size_t comma = text.find(',');
    last = comma == std::string_view::npos;
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return Error(Code::kInvalidArgument,
                   fmt::format("'{}' is not understood; {}", part, kExample));
    }
    const std::string_view name = part.substr(0, equals);
    RETURN_IF_ERROR(SetOption(name, part.substr(equals + 1), options));
    if (!seen.insert(name).second) {
      return Error(Code::kInvalidArgument, fmt::format("{} is said twice", name));
    }
    if (!last) text.remove_prefix(comma + 1);
  }
  return options;
}

std::string FormatOptions(const Options& options) {
  std::string text = fmt::format("steps={},free-steps={},warmup-steps={}", options.steps,
                                 options.free_steps, options.warmup_steps);
  if (options.run_steps != 0) text += fmt::format(",run-steps={}", options.run_steps);
  return text;
}

}  // namespace optcache::headspace
