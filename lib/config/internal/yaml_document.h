#pragma once

// Text into YAML documents, within limits, and each document into JSON.

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "api/fields.h"
#include "base/result.h"
#include "config/yaml_value.h"

namespace optcache::config::internal {

// A document as api::Fields reads it: JSON whose scalars are all texts, as they are written, and
// the place of each value in the file.
class YamlDocument final : public api::FilePositions {
 public:
  // kInvalidArgument: a key is there twice, or is no word.
  static Result<YamlDocument> Read(const YAML::Node& node, std::string_view file);

  const nlohmann::json& root() const { return *root_; }
  std::string At(const nlohmann::json& value) const override;
  std::string AtKey(const nlohmann::json& value) const override;
  std::size_t RankOfKey(const nlohmann::json& value) const override;

  enum class Shape { kList, kMap };
  // Whatever the field holds, if that has this shape and no tag. Map entries are in the order of
  // the text. Not deeper than a document may be.
  YamlValue ReadValue(api::Fields& fields, std::string_view name, Shape shape) const;

 private:
  struct Place {
    int line = 0;  // from 1; 0: not known
    int key_line = 0;
    std::size_t rank = 0;
    bool quoted = false;
    std::string tag{};  // empty: none
  };
  class Converter;

  YamlDocument() = default;
  std::string AtLine(int line) const;
  YamlValue ValueOf(const nlohmann::json& value, const std::string& path,
                    api::Errors& errors) const;

  std::string file_;
  std::unique_ptr<nlohmann::json> root_ = std::make_unique<nlohmann::json>();
  std::unordered_map<const nlohmann::json*, Place> places_;  // of all values of `root_`
};

// Empty documents are left out. kInvalidArgument as ParseConfiguration says.
Result<std::vector<YAML::Node>> LoadDocuments(std::string_view text, std::string_view file);

}  // namespace optcache::config::internal
