// The CRDs' schemas against what lib/api reads: every field of a schema is read and has its names,
// limits and default, and nothing is read that has no field.

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "api/cache_plan.h"
#include "api/dataset.h"
#include "api/fields.h"
#include "api/warmup.h"
#include "support/source_dir.h"

namespace optcache::api {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

// Of objects whose keys are counted.
class NoFile final : public FilePositions {
 public:
  std::string At(const Json&) const override { return "file"; }
  std::string AtKey(const Json&) const override { return "file"; }
  std::size_t RankOfKey(const Json&) const override { return 0; }
};

// A kind of resource: its smallest object that has the field at `pointer`, and how it is read.
struct DatasetKind {
  static constexpr const char* kFile = "datasets.yaml";
  static Json Smallest(const std::string& pointer) {
    Json source = {{"http", {{"baseURL", "http://h"}}}};
    if (pointer.contains("/source/s3")) source = {{"s3", {{"bucket", "abc"}}}};
    if (pointer.contains("/source/pvc")) source = {{"pvc", {{"claimName", "c"}}}};
    if (pointer.contains("/secretRef")) source.front()["secretRef"] = {{"name", "k"}};
    Json object = {{"spec", {{"source", source}, {"cache", {{"capacity", "1Gi"}}}}}};
    if (pointer.contains("/access/0"))
      object["spec"]["access"] = Json::array({{{"namespace", "n"}}});
    return object;
  }
  static auto Parse(const Json& object) { return ParseDatasetSpec(object); }
  static void Read(Fields& fields) { ReadDatasetSpec(fields, Place::kCluster); }
};

struct CachePlanKind {
  static constexpr const char* kFile = "cacheplans.yaml";
  static Json Smallest(const std::string& pointer) {
    Json object = {{"spec", {{"dataset", "d"}}}};
    if (pointer.contains("/jobs/0")) object["spec"]["jobs"] = Json::array({{{"name", "j"}}});
    if (pointer == "/spec/goal/unheardOf") object["spec"]["goal"] = {{"waiting", "2%"}};
    return object;
  }
  static auto Parse(const Json& object) { return ParseCachePlanSpec(object); }
  static void Read(Fields& fields) { ReadCachePlanSpec(fields); }
};

struct WarmupKind {
  static constexpr const char* kFile = "warmups.yaml";
  static Json Smallest(const std::string&) { return {{"spec", {{"dataset", "d"}}}}; }
  static auto Parse(const Json& object) { return ParseWarmupSpec(object); }
  static void Read(Fields& fields) { ReadWarmupSpec(fields); }
};

// "spec.jobs[0].name", of "/spec/jobs/0/name".
std::string PathOf(const std::string& pointer) {
  std::string path;
  for (std::size_t at = 1; at < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', at), pointer.size());
    const std::string step = pointer.substr(at, end - at);
    path += step == "0" ? "[0]" : (path.empty() ? "" : ".") + step;
    at = end + 1;
  }
  return path;
}

// A default as it stands in a schema: an object, a list, or what its type says.
Json ValueOf(const YAML::Node& node, const std::string& type) {
  if (node.IsMap()) return Json::object();
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node)
      list.push_back(item.Scalar());
    return list;
  }
  return type == "integer" || type == "boolean" ? Json::parse(node.Scalar()) : Json(node.Scalar());
}

template <typename Kind>
class Crd : public testing::Test {
 protected:
  // Each field below `schema`, which stands at `pointer`.
  void Walk(const YAML::Node& schema, const std::string& pointer) {
    const YAML::Node properties = schema["properties"];
    if (!properties) return;
    CheckNames(properties, pointer);
    for (const auto& property : properties) {
      const std::string at = pointer + "/" + property.first.Scalar();
      // One machine reads it.
      if (at == "/spec/source/file") continue;
      SCOPED_TRACE(at);
      Check(property.second, at);
      Walk(property.second, at);
      if (property.second["items"]) Walk(property.second["items"], at + "/0");
      ++fields_;
    }
  }

  std::size_t fields_ = 0;

 private:
  Json With(const std::string& pointer, const Json& value) {
    Json object = Kind::Smallest(pointer);
    object[Pointer(pointer)] = value;
    return object;
  }

  void Passes(const std::string& pointer, const Json& value) {
    const auto parsed = Kind::Parse(With(pointer, value));
    EXPECT_TRUE(parsed) << value << ": " << parsed.error().message();
  }
  // With an error of this field that ends so.
  void Fails(const std::string& pointer, const Json& value, const std::string& end = "") {
    const auto parsed = Kind::Parse(With(pointer, value));
    ASSERT_FALSE(parsed) << value;
    const std::string message = parsed.error().message();
    EXPECT_TRUE(message.contains(PathOf(pointer))) << message;
    EXPECT_TRUE(message.ends_with(end)) << message;
  }

  void CheckNames(const YAML::Node& properties, const std::string& pointer) {
    const Json object = With(pointer + "/unheardOf", "x");
    const NoFile file;
    Errors errors(file);
    Fields fields(object, "", errors);
    Kind::Read(fields);
    std::set<std::string> names;
    for (const auto& property : properties)
      names.insert(property.first.Scalar());
    const std::string message = errors.status().message();
    const std::string kAllowed = "unheardOf is not known, allowed: ";
    ASSERT_TRUE(message.contains(kAllowed)) << message;
    std::set<std::string> read;
    for (std::size_t at = message.find(kAllowed) + kAllowed.size(); at < message.size();) {
      const std::size_t end = std::min(message.find(", ", at), message.size());
      read.insert(message.substr(at, end - at));
      at = end + 2;
    }
    EXPECT_EQ(read, names) << pointer;
  }

  void Check(const YAML::Node& schema, const std::string& pointer) {
    const std::string type = schema["type"].as<std::string>("");
    Fails(pointer, type == "array" || type == "object" ? Json(5) : Json::array({1}));
    CheckEnumeration(schema["enum"], pointer);
    if (schema["items"]) CheckEnumerationOfItems(schema["items"]["enum"], pointer);
    if (schema["minimum"]) CheckRange(schema, pointer);
    if (schema["maxLength"]) CheckLength(schema, pointer);
    if (schema["maxItems"]) CheckCount(schema, pointer);
    if (schema["default"]) {
      const auto without = Kind::Parse(Kind::Smallest(pointer));
      const auto with = Kind::Parse(With(pointer, ValueOf(schema["default"], type)));
      ASSERT_TRUE(without && with);
      EXPECT_EQ(*with, *without) << "another default";
    }
  }

  void CheckEnumeration(const YAML::Node& values, const std::string& pointer) {
    if (!values) return;
    std::string all;
    for (const YAML::Node& value : values) {
      Passes(pointer, value.Scalar());
      all += (all.empty() ? "" : ", ") + value.Scalar();
    }
    Fails(pointer, "Unheard", "is not known, allowed: " + all);
  }

  void CheckEnumerationOfItems(const YAML::Node& values, const std::string& pointer) {
    if (!values) return;
    std::string all;
    for (const YAML::Node& value : values) {
      Passes(pointer, Json::array({value.Scalar()}));
      all += (all.empty() ? "" : ", ") + value.Scalar();
    }
    Fails(pointer, Json::array({"Unheard"}), "is not known, allowed: " + all);
  }

  void CheckRange(const YAML::Node& schema, const std::string& pointer) {
    const auto least = schema["minimum"].as<std::int64_t>();
    const auto most = schema["maximum"].as<std::int64_t>();
    const std::string allowed =
        "allowed: a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    Passes(pointer, least);
    Passes(pointer, most);
    Fails(pointer, least - 1, allowed);
    Fails(pointer, most + 1, allowed);
  }

  void CheckLength(const YAML::Node& schema, const std::string& pointer) {
    const auto most = schema["maxLength"].as<std::size_t>();
    Fails(pointer, std::string(most + 1, 'a'));
    // What has no other rule.
    const bool is_free = !schema["x-kubernetes-validations"] && !schema["enum"] &&
                         !schema["pattern"] && !schema["format"] && !schema["anyOf"];
    if (is_free) Passes(pointer, std::string(most, 'a'));
  }

  void CheckCount(const YAML::Node& schema, const std::string& pointer) {
    const auto most = schema["maxItems"].as<std::size_t>();
    Json list = Json::array();
    for (std::size_t i = 0; i <= most; ++i) {
      Json item = "Disk";
      if (const YAML::Node required = schema["items"]["required"])
        item = {{required[0].Scalar(), "n" + std::to_string(i)}};
      if (i == most) Passes(pointer, list);
      list.push_back(item);
    }
    Fails(pointer, list, std::to_string(most + 1) + " items, allowed: " + std::to_string(most));
  }
};

using Kinds = testing::Types<DatasetKind, CachePlanKind, WarmupKind>;
TYPED_TEST_SUITE(Crd, Kinds);

TYPED_TEST(Crd, IsWhatIsRead) {
  const YAML::Node crd =
      YAML::LoadFile(InRepository("manifests/crds/" + std::string(TypeParam::kFile)));
  this->Walk(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"],
             "/spec");
  EXPECT_GE(this->fields_, 4U);
}

}  // namespace
}  // namespace optcache::api
