// Reads fields of a YAML mapping by name, with the first error and its line.
//
// The idea: `known_` notes each key that was asked for, so Finish can name a key that nobody reads
// together with those that there are: a misspelt field is never ignored. A reader of a resource is
// then a list of fields without any handling of errors, because after the first one all reads are
// skipped.
//
// Invariants: a mapping has no key twice and none that is not a word (CheckKeys). A single text has
// at most kMaxTextBytes bytes, and a list that FindList finds kMaxListItems entries. Numbers and
// quantities are parsed from their text here, and not by yaml-cpp. A quoted word stays a text; tags
// are refused.

#include "config/internal/yaml_fields.h"

#include <algorithm>
#include <utility>

#include "base/decimal.h"
#include "base/whole_number.h"
#include "config/internal/yaml_document.h"

namespace optcache::config::internal {
namespace {

bool IsLabel(std::string_view text) {
  constexpr std::string_view kEnds = "abcdefghijklmnopqrstuvwxyz0123456789";
  return !text.empty() && text.size() <= 63 && kEnds.contains(text.front()) &&
         kEnds.contains(text.back()) &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

bool IsSubdomain(std::string_view text) {
  if (text.size() > 253) return false;
  while (true) {
    const std::size_t dot = text.find('.');
    if (!IsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

}  // namespace

void YamlErrors::Add(const YAML::Node& at, const std::string& what) {
  if (ok()) status_ = ErrorAt(file_, at.Mark(), what);
}

YamlMap::YamlMap(const YAML::Node& node, std::string path, YamlErrors& errors)
    : node_(node), path_(std::move(path)), errors_(&errors) {
  if (errors.ok()) CheckKeys();
}

void YamlMap::CheckKeys() {
  if (!node_.IsMap()) {
    return errors_->Add(
        node_, (path_.empty() ? "document" : path_) + ": not a mapping, allowed: {key: value}");
  }
  std::vector<std::string> keys;
  for (const auto& item : node_) {
    if (!item.first.IsScalar()) return errors_->Add(item.first, path_ + ": a key is not a word");
    if (keys.size() >= kMaxListItems) return errors_->Add(item.first, path_ + ": too many keys");
    if (std::ranges::find(keys, item.first.Scalar()) != keys.end()) {
      return errors_->Add(item.first, PathOf(item.first.Scalar()) + " is written twice");
    }
    keys.push_back(item.first.Scalar());
  }
}

std::string YamlMap::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

YAML::Node YamlMap::Find(std::string_view name) {
  if (std::ranges::find(known_, name) == known_.end()) known_.emplace_back(name);
  if (errors_->ok() && node_.IsMap()) {
    for (const auto& item : node_) {
      if (item.first.IsScalar() && item.first.Scalar() == name) return item.second;
    }
  }
  return YAML::Node(YAML::NodeType::Null);
}

bool YamlMap::Has(std::string_view name) {
  return !Find(name).IsNull();
}

std::string YamlMap::Where(std::string_view name) {
  return ErrorAt(errors_->file(), Find(name).Mark(), PathOf(name)).message();
}

void YamlMap::Fail(std::string_view name, const std::string& what) {
  const YAML::Node field = Find(name);
  errors_->Add(field.IsNull() ? node_ : field, PathOf(name) + ": " + what);
}

std::optional<std::string> YamlMap::Text(std::string_view name) {
  const YAML::Node field = Find(name);
  if (field.IsNull()) return std::nullopt;
  if (!field.IsScalar()) {
    Fail(name, "a list or mapping, allowed: a single value");
    return std::nullopt;
  }
  if (field.Scalar().size() > kMaxTextBytes) {
    Fail(name, "longer than " + std::to_string(kMaxTextBytes) + " bytes");
    return std::nullopt;
  }
  return field.Scalar();
}

void YamlMap::Need(std::string_view name, std::string& out, std::string_view allowed) {
  Read(name, out);
  if (out.empty()) Fail(name, "missing or empty, allowed: " + std::string(allowed));
}

void YamlMap::Read(std::string_view name, std::string& out) {
  if (std::optional<std::string> text = Text(name)) out = *std::move(text);
}

void YamlMap::Read(std::string_view name, bool& out) {
  const std::optional<std::string> text = Text(name);
  if (!text) return;
  if (*text != "true" && *text != "false") {
    return Fail(name, "'" + *text + "' is not known, allowed: true, false");
  }
  out = *text == "true";
}

void YamlMap::Read(std::string_view name, std::int64_t& out, std::int64_t min, std::int64_t max) {
  const std::optional<std::string> text = Text(name);
  if (!text) return;
  const std::optional<std::int64_t> value = ParseWholeNumber<std::int64_t>(*text);
  if (!value || *value < min || *value > max) {
    return Fail(name, "'" + *text + "', allowed: a whole number from " + std::to_string(min) +
                          " to " + std::to_string(max));
  }
  out = *value;
}

void YamlMap::ReadShare(std::string_view name, double& out) {
  const std::optional<std::string> text = Text(name);
  if (!text) return;
  const std::optional<double> value = ParseDecimal(*text);
  const bool allowed = value && *value >= 0 && *value <= 1;
  if (!allowed) return Fail(name, "'" + *text + "', allowed: a number from 0 to 1");
  out = *value;
}

void YamlMap::Need(std::string_view name, Capacity& out) {
  const std::optional<std::string> text = Text(name);
  if (!text) return Fail(name, "missing, allowed: a quantity (500Gi) or a share (30%)");
  if (text->ends_with('%')) {
    const auto percent = ParseDecimal(std::string_view(*text).substr(0, text->size() - 1));
    const bool allowed = percent && *percent > 0 && *percent <= 1000;
    if (!allowed) return Fail(name, "'" + *text + "', allowed: above 0% and at most 1000%");
    out = {.bytes = 0, .percent = *percent};
    return;
  }
  const Result<ByteCount> bytes = ParseQuantity(*text);
  if (!bytes) return Fail(name, bytes.error().message() + ", or a share as 30%");
  if (*bytes == 0) return Fail(name, "0 would cache nothing, write a capacity above 0");
  out = {.bytes = *bytes, .percent = 0};
}

void YamlMap::Read(std::string_view name, ByteCount& out) {
  const std::optional<std::string> text = Text(name);
  if (!text) return;
  const Result<ByteCount> bytes = ParseQuantity(*text);
  if (!bytes) return Fail(name, bytes.error().message());
  if (*bytes == 0) return Fail(name, "0, allowed: a quantity above 0");
  out = *bytes;
}

YAML::Node YamlMap::FindList(std::string_view name) {
  const YAML::Node list = Find(name);
  if (list.IsNull()) return list;
  if (!list.IsSequence()) Fail(name, "not a list, allowed: [one, two]");
  if (list.size() > kMaxListItems) {
    Fail(name, "more than " + std::to_string(kMaxListItems) + " items");
  }
  return list;
}

void YamlMap::Read(std::string_view name, std::vector<std::string>& out) {
  const YAML::Node list = FindList(name);
  if (!list.IsSequence() || !errors_->ok()) return;
  out.clear();
  for (const YAML::Node& item : list) {
    if (!item.IsScalar() || item.Scalar().size() > kMaxTextBytes) {
      return errors_->Add(item, PathOf(name) + ": an item is not a single value of at most " +
                                    std::to_string(kMaxTextBytes) + " bytes");
    }
    out.push_back(item.Scalar());
  }
}

void YamlMap::Read(std::string_view name, std::map<std::string, std::string>& out) {
  if (!Has(name)) return;
  const YAML::Node map = Find(name);
  const YamlMap checked(map, PathOf(name), *errors_);
  if (!errors_->ok()) return;
  for (const auto& item : map) {
    if (!item.second.IsScalar()) return Fail(name, "a value is not a word");
    out[item.first.Scalar()] = item.second.Scalar();
  }
}

YamlValue YamlMap::ReadValue(std::string_view name, Shape shape) {
  const YAML::Node field = Find(name);
  if (shape == Shape::kList && !field.IsSequence()) Fail(name, "not a list, allowed: [one, two]");
  if (shape == Shape::kMap && !field.IsMap()) Fail(name, "not a mapping, allowed: {key: value}");
  return ValueOf(field, PathOf(name));
}

// Not deeper than a document may be.
YamlValue YamlMap::ValueOf(const YAML::Node& node, const std::string& path) {
  if (!errors_->ok()) return {};
  const std::string& tag = node.Tag();
  const bool quoted = tag == "!";
  if (!quoted && !tag.empty() && tag != "?") {
    errors_->Add(node, path + ": a tag (" + tag + ") is not allowed, leave it out");
    return {};
  }
  if (node.IsMap()) {
    const YamlMap checked(node, path, *errors_);
    YamlValue::Map map;
    for (const auto& item : node) {
      if (!errors_->ok()) break;
      const std::string key = item.first.Scalar();
      map.emplace_back(key, ValueOf(item.second, path + "." + key));
    }
    return {.value = std::move(map)};
  }
  if (node.IsSequence()) {
    YamlValue::List list;
    for (const YAML::Node& item : node)
      list.push_back(ValueOf(item, path + "[" + std::to_string(list.size()) + "]"));
    return {.value = std::move(list)};
  }
  if (!node.IsScalar()) return {};
  return quoted ? YamlValue{.value = node.Scalar()} : ReadYamlWord(node.Scalar());
}

void YamlMap::ReadLabel(std::string_view name, std::string& out) {
  Read(name, out);
  if (IsLabel(out)) return;
  Fail(name,
       "'" + out + "', allowed: at most 63 of a-z, 0-9 and -, a letter or digit at both ends");
}

void YamlMap::NeedSubdomain(std::string_view name, std::string& out) {
  constexpr std::string_view kAllowed =
      "a-z, 0-9, - and dots, a letter or digit at both ends of each part";
  Need(name, out, kAllowed);
  if (!IsSubdomain(out)) Fail(name, "'" + out + "', allowed: " + std::string(kAllowed));
}

void YamlMap::Finish() {
  if (!errors_->ok() || !node_.IsMap()) return;
  for (const auto& item : node_) {
    if (std::ranges::find(known_, item.first.Scalar()) != known_.end()) continue;
    std::string allowed;
    for (const std::string& key : known_)
      allowed += (allowed.empty() ? "" : ", ") + key;
    return errors_->Add(item.first,
                        PathOf(item.first.Scalar()) + " is not known, allowed: " + allowed);
  }
}

}  // namespace optcache::config::internal
