// Reads fields of a JSON object by name, and keeps what is wrong with its place.
//
// The idea: a reader of a resource is a list of fields without any handling of errors. What is
// wrong is noted, the variable keeps its default, and the reader goes on, until there are as many
// errors as are kept: then every field is taken to be missing.
//
// Invariants: no text, list or map is larger than its reader allows. In a file `known_` has each
// key that was asked for, so Finish names a key that nothing reads together with those that there
// are.

#include "api/fields.h"

#include <algorithm>
#include <cmath>

#include "api/limits.h"
#include "base/decimal.h"
#include "base/whole_number.h"

namespace optcache::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSubdomain = 253;

bool IsLabel(std::string_view text) {
  constexpr std::string_view kEnds = "abcdefghijklmnopqrstuvwxyz0123456789";
  return !text.empty() && text.size() <= 63 && kEnds.contains(text.front()) &&
         kEnds.contains(text.back()) &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

bool IsSubdomain(std::string_view text) {
  if (text.size() > kMaxSubdomain) return false;
  while (true) {
    const std::size_t dot = text.find('.');
    if (!IsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string TooMany(std::size_t given, std::size_t allowed, std::string_view what) {
  return std::to_string(given) + " " + std::string(what) + ", allowed: " + std::to_string(allowed);
}

// As an error shows it.
std::string Shown(const json& value) {
  if (value.is_structured()) return "a list or mapping";
  if (!value.is_string()) return "'" + value.dump() + "'";
  constexpr std::size_t kMostShown = 256;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() > kMostShown ? "a text of " + std::to_string(text.size()) + " bytes"
                                  : "'" + text + "'";
}

}  // namespace

void Errors::Add(const std::string& path, const std::string& what) {
  if (!full()) all_.push_back(path + ": " + what);
}

void Errors::AddAt(const json& value, const std::string& what) {
  if (!full()) all_.push_back(file_->At(value) + ": " + what);
}

void Errors::AddAtKey(const json& value, const std::string& what) {
  if (!full()) all_.push_back(file_->AtKey(value) + ": " + what);
}

Status Errors::status() const {
  if (all_.empty()) return OkStatus();
  std::string all;
  for (const std::string& error : all_)
    all += (all.empty() ? "" : "; ") + error;
  return {Code::kInvalidArgument, all};
}

Fields::Fields(const json& object, std::string path, Errors& errors)
    : object_(&object), path_(std::move(path)), errors_(&errors) {
  if (!object.is_object())
    FaultAt(object, path_.empty() ? "document" : path_, "not a mapping, allowed: {key: value}");
}

const json* Fields::Find(std::string_view name) {
  if (errors_->file() != nullptr && std::ranges::find(known_, name) == known_.end())
    known_.emplace_back(name);
  if (errors_->full() || !object_->is_object()) return nullptr;
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void Fields::FaultAt(const json& value, const std::string& path, const std::string& what) {
  if (errors_->file() == nullptr) return errors_->Add(path, what);
  errors_->AddAt(value, path + ": " + what);
}

void Fields::Fault(std::string_view name, const std::string& what) {
  const json* const field = Find(name);
  FaultAt(field == nullptr ? *object_ : *field, PathOf(name), what);
}

void Fields::FaultOfName(std::string_view name, const std::string& text,
                         const std::string& allowed) {
  Fault(name, "'" + text + "' is not known, allowed: " + allowed);
}

std::string Fields::Where(std::string_view name) {
  const json* const field = Find(name);
  const std::string path = PathOf(name);
  return errors_->file() == nullptr || field == nullptr ? path
                                                        : errors_->file()->At(*field) + ": " + path;
}

std::string Fields::TakeText(const json& value, std::size_t max_bytes, std::string& out) {
  if (!value.is_string())
    return errors_->file() == nullptr ? "not a string"
                                      : "a list or mapping, allowed: a single value";
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes) return TooMany(text.size(), max_bytes, "bytes");
  out = text;
  return {};
}

void Fields::Read(std::string_view name, std::string& out, std::size_t max_bytes) {
  if (const json* const value = Find(name))
    Text(*value, max_bytes, out, [&] { return PathOf(name); });
}

void Fields::Need(std::string_view name, std::string& out, std::size_t max_bytes,
                  std::string_view allowed) {
  const json* const value = Find(name);
  if (value != nullptr && !Text(*value, max_bytes, out, [&] { return PathOf(name); })) return;
  if (out.empty()) Fault(name, "missing or empty, allowed: " + std::string(allowed));
}

void Fields::Read(std::string_view name, bool& out) {
  const json* const value = Find(name);
  if (value == nullptr) return;
  const bool in_file = errors_->file() != nullptr;
  if (in_file ? *value == "true" || *value == "false" : value->is_boolean()) {
    out = in_file ? *value == "true" : value->get<bool>();
  } else {
    Fault(name, Shown(*value) + " is not known, allowed: true, false");
  }
}

void Fields::Read(std::string_view name, double& out) {
  const json* const value = Find(name);
  if (value == nullptr) return;
  std::optional<double> number;
  if (value->is_number()) {
    number = value->get<double>();
  } else if (errors_->file() != nullptr && value->is_string()) {
    number = ParseDecimal(value->get_ref<const std::string&>());
  }
  if (!number || !std::isfinite(*number)) return Fault(name, Shown(*value) + ", allowed: a number");
  out = *number;
}

void Fields::Read(std::string_view name, std::int64_t& out, std::int64_t min, std::int64_t max) {
  const json* const value = Find(name);
  if (value == nullptr) return;
  std::optional<std::int64_t> number;
  if (value->is_number_unsigned()) {
    if (std::in_range<std::int64_t>(value->get<std::uint64_t>()))
      number = value->get<std::int64_t>();
  } else if (value->is_number_integer()) {
    number = value->get<std::int64_t>();
  } else if (errors_->file() != nullptr && value->is_string()) {
    number = ParseWholeNumber<std::int64_t>(value->get_ref<const std::string&>());
  }
  if (!number || *number < min || *number > max) {
    return Fault(name, Shown(*value) + ", allowed: a whole number from " + std::to_string(min) +
                           " to " + std::to_string(max));
  }
  out = *number;
}

void Fields::ReadIntOrText(std::string_view name, std::string& out, std::size_t max_bytes) {
  const json* const value = Find(name);
  if (value == nullptr) return;
  if (value->is_number_integer()) {
    out = value->dump();
  } else {
    Text(*value, max_bytes, out, [&] { return PathOf(name); });
  }
}

void Fields::ReadBytes(std::string_view name, ByteCount& out) {
  std::string text;
  ReadIntOrText(name, text, kMaxQuantity);
  if (!Has(name)) return;
  const Result<ByteCount> bytes = ParseQuantity(text);
  if (!bytes) return Fault(name, bytes.error().message());
  if (*bytes == 0) return Fault(name, "0, allowed: a quantity above 0");
  out = *bytes;
}

const json* Fields::FindList(std::string_view name, std::size_t max_items) {
  const json* const list = Find(name);
  if (list == nullptr) return nullptr;
  if (!list->is_array()) {
    Fault(name, "not a list, allowed: [one, two]");
    return nullptr;
  }
  if (list->size() > max_items) {
    Fault(name, TooMany(list->size(), max_items, "items"));
    return nullptr;
  }
  return list;
}

void Fields::Read(std::string_view name, std::vector<std::string>& out, std::size_t max_items,
                  std::size_t max_bytes) {
  const json* const list = FindList(name, max_items);
  if (list == nullptr) return;
  out.clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    std::string text;
    const auto path = [&] { return PathOf(name) + "[" + std::to_string(i) + "]"; };
    if (Text((*list)[i], max_bytes, text, path)) out.push_back(std::move(text));
  }
}

void Fields::Read(std::string_view name, std::map<std::string, std::string>& out,
                  std::size_t max_items, std::size_t max_bytes) {
  const json* const map = Find(name);
  if (map == nullptr) return;
  if (!map->is_object()) return Fault(name, "not a mapping, allowed: {key: value}");
  if (map->size() > max_items) return Fault(name, TooMany(map->size(), max_items, "entries"));
  for (const auto& [key, value] : map->items()) {
    std::string text;
    if (Text(value, max_bytes, text, [&] { return PathOf(name) + "." + key; }))
      out[key] = std::move(text);
  }
}

void Fields::ReadLabel(std::string_view name, std::string& out) {
  Read(name, out, kMaxSubdomain);
  if (IsLabel(out) || errors_->full()) return;
  Fault(name,
        "'" + out + "', allowed: at most 63 of a-z, 0-9 and -, a letter or digit at both ends");
}

void Fields::NeedSubdomain(std::string_view name, std::string& out, std::size_t max_bytes) {
  constexpr std::string_view kAllowed =
      "a-z, 0-9, - and dots, a letter or digit at both ends of each part";
  Need(name, out, max_bytes, kAllowed);
  if (out.empty() || IsSubdomain(out)) return;
  Fault(name, "'" + out + "', allowed: " + std::string(kAllowed));
}

void CheckResourceName(Fields& resource) {
  resource.In("metadata", [](Fields& metadata) {
    std::string name;
    metadata.Read("name", name, kMaxSubdomain);
    if (name.size() > kMaxResourceName) {
      metadata.Fault("name", "at most " + std::to_string(kMaxResourceName) +
                                 " characters, as it becomes the value of a label");
    }
  });
}

void Fields::Finish() {
  if (errors_->file() == nullptr || errors_->full() || !object_->is_object()) return;
  const json* unknown = nullptr;
  std::string key_of_unknown;
  for (const auto& [key, value] : object_->items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    if (unknown != nullptr &&
        errors_->file()->RankOfKey(*unknown) < errors_->file()->RankOfKey(value))
      continue;
    unknown = &value;
    key_of_unknown = key;
  }
  if (unknown == nullptr) return;
  std::string allowed;
  for (const std::string& key : known_)
    allowed += (allowed.empty() ? "" : ", ") + key;
  errors_->AddAtKey(*unknown, PathOf(key_of_unknown) + " is not known, allowed: " + allowed);
}

}  // namespace optcache::api
