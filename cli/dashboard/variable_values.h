#pragma once

// Which values a dashboard's variable can have: Grafana asks for them by label_values(SELECTOR,
// LABEL). Pure.

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cli/dashboard/prometheus.h"

namespace optcache::cli {

struct LabelQuestion {
  std::string selector;  // with variables
  std::string label;
};

// Nothing if that is not what is asked.
std::optional<LabelQuestion> ParseLabelQuestion(std::string_view grafana);

// PromQL for a series of each value that there was; `selector` is filled.
std::string ValuesQuery(const std::string& selector, const std::string& label,
                        const TimeRange& range);

// "--var dataset=default/nosuch: Prometheus has no such value in that time; it has a/b, a/c";
// nothing if it has it.
std::optional<std::string> NoteOfUnknownValue(const std::string& variable, const std::string& value,
                                              const std::set<std::string>& known);

}  // namespace optcache::cli
