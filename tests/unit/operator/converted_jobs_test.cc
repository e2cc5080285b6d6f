// What `optcache convert dlcpod` prints (tests/golden/cli/dlcpod) is what the operator takes: its
// Datasets, and what the pod of its Job asks for.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "api/dataset.h"
#include "kube/object.h"
#include "operator/webhook/request.h"
#include "support/source_dir.h"

namespace optcache::api {
namespace {

using kube::Json;

// Scalars as text: all that counts here is.
Json TextTree(const YAML::Node& node) {
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node)
      list.push_back(TextTree(item));
    return list;
  }
  if (!node.IsMap()) return node.Scalar();
  Json object = Json::object();
  for (const auto& item : node)
    object[item.first.Scalar()] = TextTree(item.second);
  return object;
}

class ConvertedJob : public testing::TestWithParam<const char*> {};

TEST_P(ConvertedJob, IsTakenByTheOperator) {
  const std::string file =
      InRepository(std::string("tests/golden/cli/dlcpod/") + GetParam() + ".yaml");
  std::vector<std::string> datasets;
  Json pod;
  for (const YAML::Node& document : YAML::LoadAllFromFile(file)) {
    const Json object = TextTree(document);
    if (object["kind"] == "Job") {
      pod = object["spec"]["template"];
      continue;
    }
    const auto spec = ParseDatasetSpec(object);
    ASSERT_TRUE(spec) << spec.error().message();
    EXPECT_EQ(spec->order, dataset::Order::kPath);
    datasets.push_back(object["metadata"]["name"]);
  }
  ASSERT_TRUE(pod.is_object());
  if (datasets.empty()) {
    EXPECT_FALSE(pod.contains("metadata"));
    return;
  }
  const auto request = webhook::ParseRequest(pod, "vision");
  ASSERT_TRUE(request) << request.error().message();
  std::vector<std::string> asked;
  for (const auto& dataset : request->datasets)
    asked.push_back(dataset.name);
  EXPECT_EQ(asked, datasets);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertedJob, testing::Values("several", "uncached"));

}  // namespace
}  // namespace optcache::api
