#include "operator/api/fields.h"

namespace optcache::api {
namespace {

const kube::Json kNothing;

std::string AtMost(std::size_t given, std::size_t allowed, std::string_view what) {
  return std::to_string(given) + " " + std::string(what) + ", allowed: " + std::to_string(allowed);
}

}  // namespace

void ValidationErrors::Add(const std::string& path, const std::string& what) {
  if (validation_errors_.size() < kMaxErrors) validation_errors_.push_back(path + ": " + what);
}

Status ValidationErrors::status() const {
  if (validation_errors_.empty()) return OkStatus();
  std::string all;
  for (const std::string& fault : validation_errors_)
    all += (all.empty() ? "" : "; ") + fault;
  return {Code::kInvalidArgument, all};
}

Fields::Fields(const kube::Json& object, std::string path, ValidationErrors& validation_errors)
    : object_(object.is_object() ? object : kNothing),
      path_(std::move(path)),
      validation_errors_(validation_errors) {
  if (!object.is_object() && !object.is_null()) validation_errors_.Add(path_, "not an object");
}

const kube::Json* Fields::Value(const char* name) const {
  if (!object_.is_object()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::Has(const char* name) const {
  return Value(name) != nullptr;
}

Fields Fields::In(const char* name) const {
  const kube::Json* const value = Value(name);
  return {value == nullptr ? kNothing : *value, PathOf(name), validation_errors_};
}

bool Fields::Text(std::string_view name, const kube::Json& value, std::size_t max_bytes,
                  std::string& out) {
  if (!value.is_string()) {
    Fault(name, "not a string");
    return false;
  }
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() > max_bytes) {
    Fault(name, AtMost(text.size(), max_bytes, "bytes"));
    return false;
  }
  out = text;
  return true;
}

void Fields::Read(const char* name, std::size_t max_bytes, std::string& out) {
  if (const kube::Json* const value = Value(name)) Text(name, *value, max_bytes, out);
}

void Fields::Read(const char* name, bool& out) {
  const kube::Json* const value = Value(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return Fault(name, "neither true nor false");
  out = value->get<bool>();
}

void Fields::Need(const char* name, std::size_t max_bytes, std::string& out) {
  const kube::Json* const value = Value(name);
  if (value == nullptr) return Fault(name, "missing");
  if (Text(name, *value, max_bytes, out) && out.empty()) Fault(name, "empty");
}

void Fields::Read(const char* name, std::int64_t min, std::int64_t max, std::int64_t& out) {
  const kube::Json* const value = Value(name);
  if (value == nullptr) return;
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() &&
                      value->get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX));
  const std::int64_t number = fits ? value->get<std::int64_t>() : 0;
  if (!fits || number < min || number > max) {
    return Fault(name,
                 "not a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  out = number;
}

void Fields::ReadIntOrText(const char* name, std::size_t max_bytes, std::string& out) {
  const kube::Json* const value = Value(name);
  if (value == nullptr) return;
  if (value->is_number_integer()) {
    out = value->dump();
  } else {
    Text(name, *value, max_bytes, out);
  }
}

const kube::Json* Fields::Array(const char* name, std::size_t max_items) {
  const kube::Json* const value = Value(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    Fault(name, "not a list");
    return nullptr;
  }
  if (value->size() > max_items) {
    Fault(name, AtMost(value->size(), max_items, "items"));
    return nullptr;
  }
  return value;
}

void Fields::Read(const char* name, std::size_t max_items, std::size_t max_bytes,
                  std::vector<std::string>& out) {
  const kube::Json* const items = Array(name, max_items);
  if (items == nullptr) return;
  out.clear();
  for (std::size_t i = 0; i < items->size(); ++i) {
    std::string text;
    if (Text(std::string(name) + "[" + std::to_string(i) + "]", (*items)[i], max_bytes, text))
      out.push_back(std::move(text));
  }
}

void Fields::Read(const char* name, std::size_t max_items, std::size_t max_bytes,
                  std::map<std::string, std::string>& out) {
  const kube::Json* const value = Value(name);
  if (value == nullptr) return;
  if (!value->is_object()) return Fault(name, "not an object");
  if (value->size() > max_items) return Fault(name, AtMost(value->size(), max_items, "entries"));
  out.clear();
  for (const auto& [key, item] : value->items()) {
    std::string text;
    if (Text(std::string(name) + "." + key, item, max_bytes, text)) out.emplace(key, text);
  }
}

}  // namespace optcache::api
