#include "cli/plan/prediction_report.h"

#include <fmt/format.h>

#include "base/decimal.h"
#include "cli/terminal/text_table.h"
#include "cli/terminal/value_text.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

std::string PointsText(const std::string& from, const std::string& to) {
  const auto before = ParseDecimal(from);
  const auto after = ParseDecimal(to);
  if (!before || !after) return "-";
  return fmt::format("{:+.1f} points", (*after - *before) * 100);
}

std::string ChangeText(const std::optional<ByteCount>& from, const std::optional<ByteCount>& to) {
  if (!from || !to) return "-";
  if (*from == *to) return "none";
  const ByteCount by = *from < *to ? *to - *from : *from - *to;
  const char* const sign = *from < *to ? "+" : "-";
  if (*from == 0) return sign + FormatBytes(by);
  return fmt::format("{0}{1} ({0}{2:.1f} %)", sign, FormatBytes(by),
                     100 * static_cast<double>(by) / static_cast<double>(*from));
}

std::string Advice(const AnsweredPrediction& answer) {
  if (answer.asked == answer.plan.content) return "The CachePlan asks for this already.\n";
  if (answer.prediction.worse) {
    return "It is predicted to be worse. Its rollout would wait until you set "
           "spec.rollout.acknowledge to true. Set it to false again after the rollout: it applies "
           "to every later change.\n";
  }
  return "";
}

}  // namespace

std::string PredictionAsTable(const AnsweredPrediction& answer) {
  const PlanFigures& now = answer.prediction.current;
  const PlanFigures& then = answer.prediction.asked;
  const Rows rows = {{"FIGURE", "PRESENT", "PREDICTED", "DIFFERENCE"},
                     {"hit ratio", PercentText(now.hit_ratio), PercentText(then.hit_ratio),
                      PointsText(now.hit_ratio, then.hit_ratio)},
                     {"store bytes an epoch", BytesText(now.store_bytes),
                      BytesText(then.store_bytes), ChangeText(now.store_bytes, then.store_bytes)},
                     {"moved bytes an epoch", BytesText(now.moved_bytes),
                      BytesText(then.moved_bytes), ChangeText(now.moved_bytes, then.moved_bytes)}};
  std::string text = answer.plan.Reference() + "\n" + FormatTable(rows);
  if (!answer.prediction.current_error.empty())
    text += "\nPRESENT is not known: " + answer.prediction.current_error + "\n";
  if (!answer.prediction.nodes.empty()) {
    Rows nodes = {{"NODE", "STORE BYTES AN EPOCH", "MOVED BYTES AN EPOCH"}};
    for (const Prediction::Node& node : answer.prediction.nodes)
      nodes.push_back({node.name, FormatBytes(node.store_bytes), FormatBytes(node.moved_bytes)});
    text += "\n" + FormatTable(nodes);
  }
  const std::string advice = Advice(answer);
  return text + (advice.empty() ? "" : "\n" + advice);
}

std::string PredictionAsJson(const AnsweredPrediction& answer) {
  OrderedJson json = {{"namespace", answer.plan.name_space},
                      {"name", answer.plan.name},
                      {"spec", answer.asked},
                      {"current", FiguresAsJson(answer.prediction.current)},
                      {"predicted", FiguresAsJson(answer.prediction.asked)}};
  if (answer.prediction.current_error.empty()) {
    json["worse"] = answer.prediction.worse;
  } else {
    json["currentError"] = answer.prediction.current_error;
  }
  json["nodes"] = OrderedJson::array();
  for (const Prediction::Node& node : answer.prediction.nodes) {
    json["nodes"].push_back(
        {{"name", node.name}, {"storeBytes", node.store_bytes}, {"movedBytes", node.moved_bytes}});
  }
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace optcache::cli
