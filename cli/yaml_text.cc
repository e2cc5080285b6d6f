#include "cli/yaml_text.h"

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "base/check.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

void Emit(YAML::Emitter& out, const OrderedJson& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key << key << YAML::Value;
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
  } else {
    out << value.dump();
  }
}

}  // namespace

std::string ToYaml(const std::string& json) {
  const OrderedJson value = OrderedJson::parse(json, nullptr, /*allow_exceptions=*/false);
  CHECK(!value.is_discarded());
  YAML::Emitter out;
  out.SetIndent(2);
  Emit(out, value);
  return std::string(out.c_str()) + "\n";
}

}  // namespace optcache::cli
