#pragma once

// Reads the fields of JSON objects from outside: the first error is kept, with the path of its
// field, and everything after it is skipped.
//
//   JsonErrors errors;
//   JsonObject object(json, "", errors);
//   object.Need("node", report.node, kMaxNameBytes);
//   object.Read("capacity", report.capacity);
//   object.ForEach("streams", kMaxStreams, [&](JsonObject item) { ... });
//   RETURN_IF_ERROR(errors.status());

#include <concepts>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/result.h"

namespace optcache::coordination::internal {

// kInvalidArgument with the place of the fault; texts longer than `limit` are not looked at.
Result<nlohmann::json> ParseJson(std::string_view text, std::size_t limit);

class JsonErrors {
 public:
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  void Add(const std::string& path, const std::string& what) {
    if (ok()) status_ = Status(Code::kInvalidArgument, path + ": " + what);
  }

 private:
  Status status_;
};

// Missing fields keep the value that `out` has, unless they are needed. Borrows the JSON and the
// errors.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& value, std::string path, JsonErrors& errors);

  void Need(const char* name, std::string& out, std::size_t max_bytes);
  void Read(const char* name, std::string& out, std::size_t max_bytes);
  void Read(const char* name, bool& out);
  void Read(const char* name, double& out);                 // finite
  void Read(const char* name, std::optional<double>& out);  // null: nullopt
  void Read(const char* name, std::int64_t& out);
  template <std::unsigned_integral Integer>
    requires(!std::same_as<Integer, bool>)
  void Read(const char* name, Integer& out) {
    ReadUnsigned(name, std::numeric_limits<Integer>::max(),
                 [&](std::uint64_t value) { out = static_cast<Integer>(value); });
  }
  // 16 hexadecimal digits: 64-bit names that JSON numbers would round in other languages.
  void ReadHex(const char* name, std::uint64_t& out);
  // Base64 to bytes.
  void ReadBytes(const char* name, std::string& out);

  // Calls `read` with each item's object.
  template <typename F>
  void ForEach(const char* name, std::size_t max_items, F&& read) {
    const nlohmann::json* items = FindArray(name, max_items);
    if (items == nullptr) return;
    for (std::size_t i = 0; i < items->size() && errors_->ok(); ++i) {
      read(JsonObject((*items)[i], PathOf(name) + "[" + std::to_string(i) + "]", *errors_));
    }
  }
  void Read(const char* name, std::size_t max_items, std::vector<std::uint32_t>& out);
  void Read(const char* name, std::size_t max_items, std::vector<std::string>& out);
  // Calls `read` with the object `name`, if it is there.
  template <typename F>
  void In(const char* name, F&& read) {
    const nlohmann::json* value = Find(name);
    if (value != nullptr) read(JsonObject(*value, PathOf(name), *errors_));
  }

  std::string PathOf(std::string_view name) const;
  JsonErrors& errors() { return *errors_; }

 private:
  const nlohmann::json* Find(const char* name) const;
  const nlohmann::json* FindArray(const char* name, std::size_t max_items);
  template <typename F>
  void ReadUnsigned(const char* name, std::uint64_t max, F&& set) {
    const nlohmann::json* value = Find(name);
    if (value == nullptr) return;
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() > max) {
      errors_->Add(PathOf(name), "not a whole number from 0 to " + std::to_string(max));
      return;
    }
    set(value->get<std::uint64_t>());
  }

  const nlohmann::json* value_;
  std::string path_;
  JsonErrors* errors_;
};

}  // namespace optcache::coordination::internal
