#include "cli/dashboard/variable_values.h"

#include <cmath>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

constexpr std::size_t kNamedMax = 10;

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<LabelQuestion> ParseLabelQuestion(std::string_view grafana) {
  constexpr std::string_view kBegin = "label_values(";
  grafana = Trimmed(grafana);
  if (!grafana.starts_with(kBegin) || !grafana.ends_with(')')) return std::nullopt;
  grafana = grafana.substr(kBegin.size(), grafana.size() - kBegin.size() - 1);
  const std::size_t comma = grafana.rfind(',');  // labels have none, selectors may
  if (comma == std::string_view::npos) return std::nullopt;
  return LabelQuestion{.selector = std::string(Trimmed(grafana.substr(0, comma))),
                       .label = std::string(Trimmed(grafana.substr(comma + 1)))};
}

std::string ValuesQuery(const std::string& selector, const std::string& label,
                        const TimeRange& range) {
  return fmt::format("group by ({}) (last_over_time({}[{:.0f}s]))", label, selector,
                     std::ceil(range.to - range.from));
}

std::optional<std::string> NoteOfUnknownValue(const std::string& variable, const std::string& value,
                                              const std::set<std::string>& known) {
  if (known.contains(value)) return std::nullopt;
  std::string there;
  std::size_t named = 0;
  for (const std::string& each : known) {
    if (named++ == kNamedMax) break;
    there += (there.empty() ? "" : ", ") + each;
  }
  if (known.size() > kNamedMax) there += fmt::format(" and {} more", known.size() - kNamedMax);
  return fmt::format("--var {}={}: Prometheus has no such value in that time; it has {}", variable,
                     value, there.empty() ? "none at all" : there);
}

}  // namespace optcache::cli
