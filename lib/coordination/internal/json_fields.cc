#include "coordination/internal/json_fields.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/base64.h"

namespace optcache::coordination::internal {

Result<nlohmann::json> ParseJson(std::string_view text, std::size_t limit) {
  if (text.size() > limit) {
    return Error(Code::kInvalidArgument, "JSON of " + std::to_string(text.size()) +
                                             " bytes, allowed: " + std::to_string(limit));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& exception) {
    return Error(Code::kInvalidArgument, std::string("not JSON: ") + exception.what());
  }
}

JsonObject::JsonObject(const nlohmann::json& value, std::string path, JsonErrors& errors)
    : value_(&value), path_(std::move(path)), errors_(&errors) {
  if (!value.is_object()) errors_->Add(path_.empty() ? "document" : path_, "not an object");
}

std::string JsonObject::PathOf(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

const nlohmann::json* JsonObject::Find(const char* name) const {
  if (!errors_->ok() || !value_->is_object()) return nullptr;
  const auto found = value_->find(name);
  return found == value_->end() ? nullptr : &*found;
}

const nlohmann::json* JsonObject::FindArray(const char* name, std::size_t max_items) {
  const nlohmann::json* items = Find(name);
  if (items == nullptr) return nullptr;
  if (!items->is_array()) {
    errors_->Add(PathOf(name), "not an array");
    return nullptr;
  }
  if (items->size() > max_items) {
    errors_->Add(PathOf(name),
                 std::to_string(items->size()) + " items, allowed: " + std::to_string(max_items));
    return nullptr;
  }
  return items;
}

void JsonObject::Need(const char* name, std::string& out, std::size_t max_bytes) {
  Read(name, out, max_bytes);
  if (out.empty()) errors_->Add(PathOf(name), "missing or empty");
}

void JsonObject::Read(const char* name, std::string& out, std::size_t max_bytes) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_string()) {
    errors_->Add(PathOf(name), "not a string");
  } else if (value->get_ref<const std::string&>().size() > max_bytes) {
    errors_->Add(PathOf(name), "longer than " + std::to_string(max_bytes) + " bytes");
  } else {
    out = value->get<std::string>();
  }
}

void JsonObject::Read(const char* name, bool& out) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return errors_->Add(PathOf(name), "not true or false");
  out = value->get<bool>();
}

void JsonObject::Read(const char* name, double& out) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return errors_->Add(PathOf(name), "not a number");
  }
  out = value->get<double>();
}

void JsonObject::Read(const char* name, std::optional<double>& out) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr || value->is_null()) return;
  double number = 0;
  Read(name, number);
  if (errors_->ok()) out = number;
}

void JsonObject::Read(const char* name, std::int64_t& out) {
  const nlohmann::json* value = Find(name);
  if (value == nullptr) return;
  const bool fits = value->is_number_unsigned()
                        ? std::in_range<std::int64_t>(value->get<std::uint64_t>())
                        : value->is_number_integer();
  if (!fits) return errors_->Add(PathOf(name), "not a whole number of 64 bits");
  out = value->get<std::int64_t>();
}

void JsonObject::ReadHex(const char* name, std::uint64_t& out) {
  constexpr std::size_t kDigits = 16;
  std::string text;
  Read(name, text, kDigits);
  if (text.empty()) return;
  const char* end = text.data() + text.size();
  std::uint64_t value = 0;
  if (text.size() != kDigits || std::from_chars(text.data(), end, value, 16).ptr != end) {
    return errors_->Add(PathOf(name), "not 16 hexadecimal digits");
  }
  out = value;
}

void JsonObject::ReadBytes(const char* name, std::string& out) {
  std::string text;
  Read(name, text, std::numeric_limits<std::size_t>::max());
  Result<std::string> bytes = DecodeBase64(text);
  if (!bytes) return errors_->Add(PathOf(name), bytes.error().message());
  out = *std::move(bytes);
}

void JsonObject::Read(const char* name, std::size_t max_items, std::vector<std::uint32_t>& out) {
  const nlohmann::json* items = FindArray(name, max_items);
  if (items == nullptr) return;
  out.clear();
  for (const nlohmann::json& item : *items) {
    if (!item.is_number_unsigned() || !std::in_range<std::uint32_t>(item.get<std::uint64_t>())) {
      return errors_->Add(PathOf(name), "not an array of whole numbers of 32 bits");
    }
    out.push_back(item.get<std::uint32_t>());
  }
}

void JsonObject::Read(const char* name, std::size_t max_items, std::vector<std::string>& out) {
  const nlohmann::json* items = FindArray(name, max_items);
  if (items == nullptr) return;
  out.clear();
  for (const nlohmann::json& item : *items) {
    if (!item.is_string()) return errors_->Add(PathOf(name), "not an array of strings");
    out.push_back(item.get<std::string>());
  }
}

}  // namespace optcache::coordination::internal
