#pragma once

// Reads the fields of JSON objects from outside. A field that is missing, or null, keeps the value
// that its variable has.
//
//   Errors errors;
//   Fields spec(json, "spec", errors);
//   spec.Need("dataset", plan.dataset, kMaxName, "the name of a Dataset");
//   spec.In("rollout", [&](Fields& rollout) { rollout.Read("paused", plan.rollout.paused); });
//   RETURN_IF_ERROR(errors.status());
//
// An object that was written to a file as YAML has texts for all its scalars: a number and a truth
// value are read from their text. There a key that nothing reads is an error as well, so that a
// misspelt field is not ignored, and an error names file and line.
//
// Nothing here is thread-safe. All of it borrows the JSON, whose values must not move.

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/enumerations.h"
#include "base/bytes.h"
#include "base/result.h"

namespace optcache::api {

// The file that an object was written to.
class FilePositions {
 public:
  virtual ~FilePositions() = default;
  // "demo.yaml:9", of a value and of the key before it.
  virtual std::string At(const nlohmann::json& value) const = 0;
  virtual std::string AtKey(const nlohmann::json& value) const = 0;
  // Its place among all keys of the file.
  virtual std::size_t RankOfKey(const nlohmann::json& value) const = 0;

 protected:
  FilePositions() = default;
  FilePositions(const FilePositions&) = default;
  FilePositions& operator=(const FilePositions&) = default;
};

// What is wrong with one object. When it has as many errors as it keeps, nothing more is read.
class Errors {
 public:
  static constexpr std::size_t kMost = 8;

  explicit Errors(std::size_t most = kMost) : most_(most) {}
  // Of an object in a file: keeps the first.
  explicit Errors(const FilePositions& file) : most_(1), file_(&file) {}

  void Add(const std::string& path, const std::string& what);
  // An error at a value of the file, or at its key.
  void AddAt(const nlohmann::json& value, const std::string& what);
  void AddAtKey(const nlohmann::json& value, const std::string& what);
  bool ok() const { return all_.empty(); }
  bool full() const { return all_.size() >= most_; }
  const FilePositions* file() const { return file_; }
  // kInvalidArgument with all of them, or Ok.
  Status status() const;

 private:
  std::size_t most_;
  const FilePositions* file_ = nullptr;  // null: it is from no file
  std::vector<std::string> all_;
};

// One object, at `path`; of the whole document that is empty.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string path, Errors& errors);

  bool Has(std::string_view name) { return Find(name) != nullptr; }
  // Null: it is not there.
  const nlohmann::json* Find(std::string_view name);
  // The key is known, whatever it holds.
  void Ignore(std::string_view name) { Find(name); }
  std::string PathOf(std::string_view name) const;
  // An error of the field; in a file at the field, or at the object that lacks it.
  void Fault(std::string_view name, const std::string& what);
  // "demo.yaml:9: spec.dataset", or without the file, for errors that are found later.
  std::string Where(std::string_view name);

  void Read(std::string_view name, std::string& out, std::size_t max_bytes);
  // `allowed` is for the message.
  void Need(std::string_view name, std::string& out, std::size_t max_bytes,
            std::string_view allowed);
  void Read(std::string_view name, bool& out);
  void Read(std::string_view name, double& out);  // finite
  void Read(std::string_view name, std::int64_t& out, std::int64_t min, std::int64_t max);
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool> && !std::same_as<Integer, std::int64_t> &&
             sizeof(Integer) < sizeof(std::int64_t))
  void Read(std::string_view name, Integer& out, std::int64_t min, std::int64_t max) {
    std::int64_t value = out;
    Read(name, value, min, max);
    out = static_cast<Integer>(value);
  }
  // A quantity, or what else is a text or a whole number: as text.
  void ReadIntOrText(std::string_view name, std::string& out, std::size_t max_bytes);
  // A quantity above 0.
  void ReadBytes(std::string_view name, ByteCount& out);
  void Read(std::string_view name, std::vector<std::string>& out, std::size_t max_items,
            std::size_t max_bytes);
  void Read(std::string_view name, std::map<std::string, std::string>& out, std::size_t max_items,
            std::size_t max_bytes);
  // RFC 1123: a label (at most 63 characters), or labels with dots between.
  void ReadLabel(std::string_view name, std::string& out);
  void NeedSubdomain(std::string_view name, std::string& out, std::size_t max_bytes = 253);

  template <typename Enum, std::size_t kCount>
  void Read(std::string_view name, Enum& out, const Names<Enum, kCount>& names) {
    const nlohmann::json* const field = Find(name);
    std::string text;
    if (field == nullptr || !Text(*field, kMaxEnumBytes, text, [&] { return PathOf(name); }))
      return;
    if (const auto value = ValueIn(names, text)) {
      out = *value;
    } else {
      FaultOfName(name, text, NamesOf(names));
    }
  }
  template <typename Enum, std::size_t kCount>
  void Read(std::string_view name, std::optional<Enum>& out, const Names<Enum, kCount>& names) {
    Enum value{};
    if (Has(name)) Read(name, value, names);
    if (Has(name)) out = value;
  }

  // Calls `read` with the fields of the object `name`, if it is there.
  template <typename F>
  void In(std::string_view name, F&& read) {
    const nlohmann::json* const object = Find(name);
    if (object == nullptr) return;
    Fields fields(*object, PathOf(name), *errors_);
    read(fields);
    fields.Finish();
  }
  // The same where it has to be there; `hint` says what to write.
  template <typename F>
  void NeedIn(std::string_view name, std::string_view hint, F&& read) {
    if (!Has(name)) return Fault(name, "missing, " + std::string(hint));
    In(name, std::forward<F>(read));
  }
  // Calls `read` with the fields of each item.
  template <typename F>
  void ForEach(std::string_view name, std::size_t max_items, F&& read) {
    const nlohmann::json* const items = FindList(name, max_items);
    if (items == nullptr) return;
    for (std::size_t i = 0; i < items->size() && !errors_->full(); ++i) {
      Fields fields((*items)[i], PathOf(name) + "[" + std::to_string(i) + "]", *errors_);
      read(fields);
      fields.Finish();
    }
  }
  // In a file: a key that was asked for by no function above is an error.
  void Finish();

  Errors& errors() { return *errors_; }

 private:
  static constexpr std::size_t kMaxEnumBytes = 64;

  const nlohmann::json* FindList(std::string_view name, std::size_t max_items);
  // The text of `value`; an error, at the path that `path` gives, if it has none or a longer one.
  template <typename F>
  bool Text(const nlohmann::json& value, std::size_t max_bytes, std::string& out, F&& path) {
    const std::string wrong = TakeText(value, max_bytes, out);
    if (!wrong.empty()) FaultAt(value, path(), wrong);
    return wrong.empty();
  }
  // What is wrong with it; empty: nothing.
  std::string TakeText(const nlohmann::json& value, std::size_t max_bytes, std::string& out);
  void FaultAt(const nlohmann::json& value, const std::string& path, const std::string& what);
  void FaultOfName(std::string_view name, const std::string& text, const std::string& allowed);
  template <typename Enum, std::size_t kCount>
  static std::string NamesOf(const Names<Enum, kCount>& names) {
    std::string all;
    for (const auto& [name, value] : names)
      all += (all.empty() ? "" : ", ") + std::string(name);
    return all;
  }

  const nlohmann::json* object_;
  std::string path_;
  Errors* errors_;
  std::vector<std::string> known_;  // keys that were asked for; in a file alone
};

// metadata.name becomes the value of a label: at most 63 characters.
void CheckResourceName(Fields& resource);

}  // namespace optcache::api
