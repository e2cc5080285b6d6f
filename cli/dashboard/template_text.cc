#include "cli/dashboard/template_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

bool IsNamePart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string Seconds(double seconds) {
  return fmt::format("{}s", static_cast<std::int64_t>(std::ceil(std::max(seconds, 1.0))));
}

// `escape` stands before what has a meaning in regular expressions.
std::string RegexEscaped(std::string_view text, std::string_view escape) {
  constexpr std::string_view kSpecial = R"(\^$*+?.()|[]{})";
  std::string safe;
  for (const char c : text) {
    if (kSpecial.contains(c)) safe += escape;
    safe += c;
    // Of a quoted text, so each backslash is written twice.
    if (c == '\\' && escape.size() > 1) safe += c;
  }
  return safe;
}

std::string Alternatives(const ChosenValues& chosen, std::string_view escape) {
  if (chosen.values.empty()) return chosen.all_value;
  if (chosen.values.size() == 1) return RegexEscaped(chosen.values.front(), escape);
  std::string all;
  for (const std::string& value : chosen.values)
    all += (all.empty() ? "" : "|") + RegexEscaped(value, escape);
  return "(" + all + ")";
}

// A variable as it stands in a query.
struct Use {
  std::string_view name;
  std::string_view format;
  std::size_t end = 0;
};

// At a '$'; nothing if no name follows, as at the end of a regular expression.
std::optional<Use> ReadUse(std::string_view query, std::size_t dollar) {
  const auto name_at = [&](std::size_t at) {
    std::size_t end = at;
    while (end < query.size() && IsNamePart(query[end]))
      ++end;
    return query.substr(at, end - at);
  };
  if (query.substr(dollar).starts_with("${")) {
    const std::size_t close = query.find('}', dollar);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view name = name_at(dollar + 2);
    if (name.empty()) return std::nullopt;
    const std::string_view rest =
        query.substr(dollar + 2 + name.size(), close - dollar - 2 - name.size());
    return Use{.name = name, .format = rest, .end = close + 1};
  }
  const std::string_view name = name_at(dollar + 1);
  if (name.empty()) return std::nullopt;
  return Use{.name = name, .format = {}, .end = dollar + 1 + name.size()};
}

Result<std::string> Fill(const Use& use, const TemplateValues& values, const TemplateTimes& times) {
  if (use.name == "__range") return Seconds(times.range_seconds);
  if (use.name == "__interval") return Seconds(times.step_seconds);
  if (use.name == "__rate_interval") {
    return Seconds(std::max(times.step_seconds + times.scrape_seconds, 4 * times.scrape_seconds));
  }
  const auto found = values.find(use.name);
  if (found == values.end())
    return Error(Code::kInvalidArgument, fmt::format("variable ${} is not known", use.name));
  if (use.format.empty()) return Alternatives(found->second, R"(\\)");
  if (use.format == ":regex") return Alternatives(found->second, R"(\)");
  return Error(
      Code::kInvalidArgument,
      fmt::format("format '{}' of variable {} is not known; :regex is", use.format, use.name));
}

}  // namespace

Result<std::string> FillQuery(std::string_view query, const TemplateValues& values,
                              const TemplateTimes& times) {
  std::string filled;
  std::size_t at = 0;
  while (at < query.size()) {
    const std::size_t dollar = std::min(query.find('$', at), query.size());
    filled += query.substr(at, dollar - at);
    at = dollar;
    if (at == query.size()) break;
    const std::optional<Use> use = ReadUse(query, at);
    if (!use) {
      filled += query[at++];
      continue;
    }
    ASSIGN_OR_RETURN(const std::string value, Fill(*use, values, times));
    filled += value;
    at = use->end;
  }
  return filled;
}

std::string FillLegend(std::string_view legend, const SeriesLabels& labels) {
  if (legend.empty()) {
    std::string all;
    std::string name;
    for (const auto& [label, value] : labels) {
      if (label == "__name__")
        name = value;
      else
        all += fmt::format("{}{}=\"{}\"", all.empty() ? "" : ", ", label, value);
    }
    return name + "{" + all + "}";
  }
  std::string filled;
  for (std::size_t at = 0; at < legend.size();) {
    const std::size_t open = std::min(legend.find("{{", at), legend.size());
    filled += legend.substr(at, open - at);
    const std::size_t close = legend.find("}}", open);
    if (close == std::string_view::npos) {
      filled += legend.substr(open);
      break;
    }
    std::string_view label = legend.substr(open + 2, close - open - 2);
    while (label.starts_with(' '))
      label.remove_prefix(1);
    while (label.ends_with(' '))
      label.remove_suffix(1);
    if (const auto found = labels.find(label); found != labels.end()) filled += found->second;
    at = close + 2;
  }
  return filled;
}

}  // namespace optcache::cli
