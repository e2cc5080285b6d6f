#include "cli/local/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace optcache::cli {
namespace {

constexpr std::string_view kBlanks = " \t";

// Takes what stands before `end`, and `end` with it; nullopt: it does not come.
std::optional<std::string_view> TakeUntil(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

// The value of a label behind its opening quote, with its escapes resolved; takes the closing one.
std::optional<std::string> TakeQuoted(std::string_view& text) {
  std::string value;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      text.remove_prefix(at + 1);
      return value;
    }
    const bool escaped = text[at] == '\\' && at + 1 < text.size();
    if (escaped) ++at;
    value += escaped && text[at] == 'n' ? '\n' : text[at];
  }
  return std::nullopt;
}

// Behind the opening brace; takes the closing one.
bool TakeLabels(std::string_view& text, std::map<std::string, std::string>& labels) {
  while (!text.starts_with('}')) {
    const std::optional<std::string_view> name = TakeUntil(text, '=');
    if (!name || !text.starts_with('"')) return false;
    text.remove_prefix(1);
    std::optional<std::string> value = TakeQuoted(text);
    if (!value) return false;
    labels[std::string(*name)] = *std::move(value);
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  text.remove_prefix(1);
  return true;
}

std::optional<MetricSample> ReadLine(std::string_view line) {
  const std::size_t name_end = line.find_first_of("{ \t");
  if (line.starts_with('#') || name_end == std::string_view::npos) return std::nullopt;
  MetricSample sample = {.name = std::string(line.substr(0, name_end)), .labels = {}};
  line.remove_prefix(name_end);
  if (line.starts_with('{')) {
    line.remove_prefix(1);
    if (!TakeLabels(line, sample.labels)) return std::nullopt;
  }
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  if (line.starts_with('+')) line.remove_prefix(1);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), sample.value);
  if (error != std::errc()) return std::nullopt;
  return sample;
}

}  // namespace

std::vector<MetricSample> ParseMetrics(std::string_view page) {
  std::vector<MetricSample> samples;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = std::min(page.find('\n', at), page.size());
    if (auto sample = ReadLine(page.substr(at, end - at))) samples.push_back(*std::move(sample));
    at = end + 1;
  }
  return samples;
}

double SumOf(const std::vector<MetricSample>& samples, std::string_view name,
             const std::string& label, std::string_view value) {
  double sum = 0;
  for (const MetricSample& sample : samples) {
    if (sample.name != name) continue;
    const auto found = sample.labels.find(label);
    if (label.empty() || (found != sample.labels.end() && found->second == value))
      sum += sample.value;
  }
  return sum;
}

}  // namespace optcache::cli
