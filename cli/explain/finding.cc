#include "cli/explain/finding.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kUnderFinding = "\n         ";  // under the column of what is found

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kWarning:
      return "warning";
    case Severity::kFault:
      break;
  }
  return "fault";
}

// Text from outside may have several lines, and none of them looks like a finding of ours. A
// terminal obeys nothing in it.
std::string Indented(std::string_view text) {
  std::string indented;
  for (const char c : Visible(text, "\n")) {
    if (c == '\n') {
      indented += kUnderFinding;
    } else {
      indented += c;
    }
  }
  return indented;
}

OrderedJson AsList(const std::vector<Finding>& findings) {
  OrderedJson list = OrderedJson::array();
  for (const Finding& finding : findings) {
    list.push_back({{"severity", std::string(SeverityName(finding.severity))},
                    {"about", finding.about},
                    {"what", finding.what},
                    {"do", finding.to_do}});
  }
  return list;
}

std::string DumpFindings(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace

Finding Fine(std::string about, std::string what) {
  return {
      .severity = Severity::kOk, .about = std::move(about), .what = std::move(what), .to_do = ""};
}

Finding Warn(std::string about, std::string what, std::string to_do) {
  return {.severity = Severity::kWarning,
          .about = std::move(about),
          .what = std::move(what),
          .to_do = std::move(to_do)};
}

Finding Fault(std::string about, std::string what, std::string to_do) {
  return {.severity = Severity::kFault,
          .about = std::move(about),
          .what = std::move(what),
          .to_do = std::move(to_do)};
}

bool HasFault(const std::vector<Finding>& findings) {
  return std::ranges::find(findings, Severity::kFault, &Finding::severity) != findings.end();
}

std::string FindingsAsText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<8} {}: {}\n", SeverityName(finding.severity), Indented(finding.about),
                        Indented(finding.what));
    if (!finding.to_do.empty()) text += fmt::format("         {}\n", Indented(finding.to_do));
  }
  return text;
}

std::string FindingsAsJson(const std::vector<Finding>& findings) {
  OrderedJson root;
  root["findings"] = AsList(findings);
  return DumpFindings(root);
}

void PutUrgentFirst(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, std::ranges::greater(), &Finding::severity);
}

std::string VerdictFrom(const std::string& what, const std::vector<Finding>& findings) {
  const auto counted = [&](Severity severity, std::string_view word) {
    const auto count = std::ranges::count(findings, severity, &Finding::severity);
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
  };
  return fmt::format("{}: {}, {}.", what, counted(Severity::kFault, "fault"),
                     counted(Severity::kWarning, "warning"));
}

std::string ExplanationAsText(const Explanation& explanation) {
  return Indented(explanation.verdict) + "\n" + FindingsAsText(explanation.findings);
}

std::string ExplanationAsJson(const Explanation& explanation) {
  return DumpFindings({{"kind", explanation.kind},
                       {"name", explanation.name},
                       {"verdict", explanation.verdict},
                       {"findings", AsList(explanation.findings)}});
}

}  // namespace optcache::cli
