// What a Dataset can do to pods of another namespace that use it: from the object that its owner
// writes to the patch that such a pod gets. Its owner must reach nothing of theirs.

#include "operator/webhook/dataset_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/resources.h"
#include "operator/manager/dataset_directory.h"
#include "operator/webhook/inject.h"
#include "unit/kube/api_fixture.h"

namespace optcache::manager {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::Not;

class BorrowerTest : public kube::ApiFixture {
 protected:
  // Of namespace `thief`, for pods of namespace `victim`.
  void Put(const char* source, const Json& entries) {
    Json dataset = kube::MakeObject(api::kDatasets, {.ns = "thief", .name = "bait"});
    dataset["spec"] = {
        {"source", Json::parse(source)}, {"cache", {{"capacity", 1}}}, {"access", entries}};
    server.store([&](kube::FakeApiStore& store) { store.Put(api::kDatasets, dataset); });
    datasets.Start();
    RunUntil([&] { return directory.synced(); });
  }
  webhook::Injection Decide(const Json& annotations = Json::object()) {
    pod = {{"metadata",
            {{"namespace", "victim"},
             {"name", "trainer"},
             {"annotations", {{"optcache.io/dataset", "thief/bait"}}}}},
           {"spec", {{"containers", Json::array({{{"name", "train"}}})}}}};
    pod["metadata"]["annotations"].update(annotations);
    return webhook::DecideInjection(pod, "victim", directory, {.version = "1"});
  }
  // The pod as it is stored, as text.
  std::string Stored(const webhook::Injection& injection) {
    return pod.patch(injection.patch).dump();
  }

  kube::Informer datasets{loop, SystemClock(), *client, {.resource = api::kDatasets}};
  kube::Informer nodes{loop, SystemClock(), *client, {.resource = kube::kNodes}};
  DatasetDirectory directory{datasets, nodes};
  Json pod;
};

TEST_F(BorrowerTest, NoDatasetMakesItsReadersMountASecret) {
  Put(R"({"http": {"baseURL": "https://thief.example.com/"}})",
      {{{"namespace", "victim"}, {"secretRef", {{"name", "default-token"}}}}});
  const webhook::Injection injection = Decide();
  EXPECT_EQ(injection.outcome, webhook::Outcome::kInjected) << injection.message;
  EXPECT_THAT(Stored(injection), Not(HasSubstr("default-token")));
}

TEST_F(BorrowerTest, NoDatasetGetsATokenOfItsReaders) {
  Put(R"({"s3": {"bucket": "bait", "endpoint": "https://thief.example.com",
                 "roleARN": "arn:aws:iam::1:role/r", "stsEndpoint": "https://thief.example.com"}})",
      {{{"namespace", "victim"}}});
  const webhook::Injection injection = Decide();
  EXPECT_EQ(injection.outcome, webhook::Outcome::kInjected) << injection.message;
  for (const char* trace : {"sts.amazonaws.com", "token-file=", "role-arn="})
    EXPECT_THAT(Stored(injection), Not(HasSubstr(trace)));
}

TEST_F(BorrowerTest, NoDatasetMakesItsReadersMountAClaim) {
  Put(R"({"pvc": {"claimName": "bait"}})",
      {{{"namespace", "victim"}, {"claimName", "checkpoints"}}});
  const webhook::Injection injection = Decide();
  EXPECT_THAT(Stored(injection), Not(HasSubstr("checkpoints")));
  EXPECT_EQ(injection.outcome, webhook::Outcome::kDenied);
}

}  // namespace
}  // namespace optcache::manager
