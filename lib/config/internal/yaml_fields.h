#pragma once

// Reads the fields of a YAML mapping from outside. The first error is kept; what is read after it
// is skipped. A key that nobody read is an error of Finish.
//
//   YamlErrors errors("demo.yaml");
//   YamlMap spec(node, "spec", errors);
//   spec.Need("dataset", plan.dataset);
//   spec.In("rollout", [&](YamlMap& rollout) { rollout.Read("paused", plan.rollout.paused); });
//   spec.Finish();

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "base/result.h"
#include "config/configuration.h"
#include "config/yaml_value.h"

namespace optcache::config::internal {

class YamlErrors {
 public:
  explicit YamlErrors(std::string_view file) : file_(file) {}
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  void Add(const YAML::Node& at, const std::string& what);
  std::string_view file() const { return file_; }

 private:
  std::string_view file_;
  Status status_;
};

class YamlMap {
 public:
  YamlMap(const YAML::Node& node, std::string path, YamlErrors& errors);

  bool Has(std::string_view name);
  // `allowed` is for the message.
  void Need(std::string_view name, std::string& out, std::string_view allowed);
  void Read(std::string_view name, std::string& out);
  void Read(std::string_view name, bool& out);
  void Read(std::string_view name, std::int64_t& out, std::int64_t min, std::int64_t max);
  template <std::unsigned_integral Integer>
    requires(!std::same_as<Integer, bool>)
  void Read(std::string_view name, Integer& out, std::int64_t min, std::int64_t max) {
    auto value = static_cast<std::int64_t>(out);
    Read(name, value, min, max);
    out = static_cast<Integer>(value);
  }
  void ReadShare(std::string_view name, double& out);  // 0 to 1, may be quoted
  void Need(std::string_view name, Capacity& out);
  // A quantity above 0.
  void Read(std::string_view name, ByteCount& out);
  void Read(std::string_view name, std::vector<std::string>& out);
  void Read(std::string_view name, std::map<std::string, std::string>& out);
  // Whatever the field holds, if that has this shape and no tag.
  enum class Shape { kList, kMap };
  YamlValue ReadValue(std::string_view name, Shape shape);
  // RFC 1123: a label (at most 63 characters), or labels with dots between (at most 253).
  void ReadLabel(std::string_view name, std::string& out);
  void NeedSubdomain(std::string_view name, std::string& out);

  template <typename Enum>
  using Names = std::vector<std::pair<std::string_view, Enum>>;
  template <typename Enum>
  void Read(std::string_view name, const Names<Enum>& names, Enum& out) {
    std::string text;
    Read(name, text);
    if (!Has(name) || !errors_->ok()) return;
    SetByName(Find(name), PathOf(name), text, names, out);
  }
  template <typename Enum, std::size_t kCount>
  void Read(std::string_view name, const api::Names<Enum, kCount>& names, Enum& out) {
    Read(name, Names<Enum>(names.begin(), names.end()), out);
  }
  template <typename Enum>
  void Read(std::string_view name, const Names<Enum>& names, std::vector<Enum>& out) {
    std::vector<std::string> texts;
    Read(name, texts);
    if (!Has(name) || !errors_->ok()) return;
    out.clear();
    for (const std::string& text : texts) {
      SetByName(Find(name), PathOf(name), text, names, out.emplace_back());
    }
  }

  // Calls `read` with the mapping `name` if it is there, and finishes it.
  template <typename F>
  void In(std::string_view name, F&& read) {
    if (!Has(name)) return;
    YamlMap map(Find(name), PathOf(name), *errors_);
    read(map);
    map.Finish();
  }
  // Calls `read` with each mapping of the list `name`.
  template <typename F>
  void ForEach(std::string_view name, F&& read) {
    const YAML::Node list = FindList(name);
    for (std::size_t i = 0; list.IsSequence() && i < list.size() && errors_->ok(); ++i) {
      YamlMap map(list[i], PathOf(name) + "[" + std::to_string(i) + "]", *errors_);
      read(map);
      map.Finish();
    }
  }
  // Accepts the key, whatever it holds.
  void Ignore(std::string_view name) { Has(name); }
  void Finish();

  // "demo.yaml:9: spec.dataset", for errors that are found later.
  std::string Where(std::string_view name);
  // An error at the field, or at the mapping if the field is not there.
  void Fail(std::string_view name, const std::string& what);
  std::string PathOf(std::string_view name) const;

 private:
  void CheckKeys();
  YAML::Node Find(std::string_view name);  // null if it is not there
  YAML::Node FindList(std::string_view name);
  std::optional<std::string> Text(std::string_view name);
  YamlValue ValueOf(const YAML::Node& node, const std::string& path);
  template <typename Enum>
  void SetByName(const YAML::Node& at, const std::string& path, const std::string& text,
                 const Names<Enum>& names, Enum& out) {
    std::string allowed;
    for (const auto& [known, value] : names) {
      if (known == text) {
        out = value;
        return;
      }
      allowed += (allowed.empty() ? "" : ", ") + std::string(known);
    }
    errors_->Add(at, path + ": '" + text + "' is not known, allowed: " + allowed);
  }

  YAML::Node node_;
  std::string path_;
  YamlErrors* errors_;
  std::vector<std::string> known_;  // keys that were asked for
};

}  // namespace optcache::config::internal
