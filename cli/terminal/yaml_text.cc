#include "cli/terminal/yaml_text.h"

#include <string_view>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "base/check.h"
#include "base/utf8.h"
#include "config/yaml_value.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kCommentColumns = 100;

void Emit(YAML::Emitter& out, const OrderedJson& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key;
      if (config::ReadYamlWord(key).As<std::string>() == nullptr) out << YAML::DoubleQuoted;
      out << key << YAML::Value;
      Emit(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    if (value.empty()) out << YAML::Flow;
    out << YAML::BeginSeq;
    for (const OrderedJson& item : value)
      Emit(out, item);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();
  }
}

// What ends a line in YAML 1.1, beside the control characters that Visible() shows.
constexpr std::string_view kSeparators[] = {"\u2028", "\u2029"};

std::string Comment(const std::string& remark) {
  std::string text = Visible(remark);
  for (const std::string_view separator : kSeparators) {
    for (std::size_t at = text.find(separator); at != std::string::npos; at = text.find(separator))
      text.replace(at, separator.size(), " ");
  }
  if (text.starts_with(' ')) return "# " + text + "\n";
  std::string lines;
  std::size_t begin = 0;
  while (text.size() - begin > kCommentColumns - 2) {
    std::size_t end = text.rfind(' ', begin + kCommentColumns - 2);
    if (end == std::string::npos || end <= begin) end = text.find(' ', begin);
    if (end == std::string::npos) break;
    lines += "# " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return lines + "# " + text.substr(begin) + "\n";
}

}  // namespace

std::string ToYaml(const std::vector<YamlDocument>& documents) {
  std::string text;
  for (const YamlDocument& document : documents) {
    if (!text.empty()) text += "---\n";
    for (const std::string& remark : document.remarks)
      text += Comment(remark);
    text += ToYaml(document.json);
  }
  return text;
}

std::string ToYaml(const std::string& json) {
  const OrderedJson value = OrderedJson::parse(json, nullptr, /*allow_exceptions=*/false);
  CHECK(!value.is_discarded());
  YAML::Emitter out;
  out.SetIndent(2);
  Emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace optcache::cli
