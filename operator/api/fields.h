#pragma once

// Reads the fields of a custom resource. The API server's schema has refused most of what is wrong;
// where its rules are older than ours, or absent, the same is found here. Every fault is kept, with
// the path of its field: "spec.cache.capacity: \"5x\": allowed: ...".

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kube/object.h"

namespace optcache::api {

// The errors of one object; those beyond kMaxErrors are not kept.
class ValidationErrors {
 public:
  static constexpr std::size_t kMaxErrors = 8;

  void Add(const std::string& path, const std::string& what);
  bool empty() const { return validation_errors_.empty(); }
  // kInvalidArgument with all of them, or Ok.
  Status status() const;

 private:
  std::vector<std::string> validation_errors_;
};

// One JSON object at `path`. Missing fields and nulls keep the value that `out` has. Borrows its
// arguments.
class Fields {
 public:
  Fields(const kube::Json& object, std::string path, ValidationErrors& validation_errors);

  bool Has(const char* name) const;
  Fields In(const char* name) const;
  std::string PathOf(std::string_view name) const { return path_ + "." + std::string(name); }
  void Fault(std::string_view name, const std::string& what) {
    validation_errors_.Add(PathOf(name), what);
  }

  void Read(const char* name, std::size_t max_bytes, std::string& out);
  void Read(const char* name, bool& out);
  void Need(const char* name, std::size_t max_bytes, std::string& out);
  void Read(const char* name, std::int64_t min, std::int64_t max, std::int64_t& out);
  // A quantity is text, or a number.
  void ReadIntOrText(const char* name, std::size_t max_bytes, std::string& out);
  void Read(const char* name, std::size_t max_items, std::size_t max_bytes,
            std::vector<std::string>& out);
  void Read(const char* name, std::size_t max_items, std::size_t max_bytes,
            std::map<std::string, std::string>& out);
  template <typename Enum>
  void Read(const char* name, std::span<const std::pair<std::string_view, Enum>> values,
            Enum& out) {
    std::string text;
    Read(name, kMaxEnumBytes, text);
    if (text.empty()) return;
    std::string allowed;
    for (const auto& [value_name, value] : values) {
      if (value_name == text) {
        out = value;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(value_name);
    }
    Fault(name, "\"" + text + "\" is not known, allowed: " + allowed);
  }
  // Calls `read` with each item's fields.
  template <typename F>
  void ForEach(const char* name, std::size_t max_items, F&& read) {
    const kube::Json* const items = Array(name, max_items);
    if (items == nullptr) return;
    for (std::size_t i = 0; i < items->size(); ++i)
      read(Fields((*items)[i], PathOf(name) + "[" + std::to_string(i) + "]", validation_errors_));
  }

 private:
  static constexpr std::size_t kMaxEnumBytes = 64;

  const kube::Json* Value(const char* name) const;
  const kube::Json* Array(const char* name, std::size_t max_items);
  bool Text(std::string_view name, const kube::Json& value, std::size_t max_bytes,
            std::string& out);

  const kube::Json& object_;
  std::string path_;
  ValidationErrors& validation_errors_;
};

}  // namespace optcache::api
