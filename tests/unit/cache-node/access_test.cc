#include "cache-node/trust/access.h"

#include <gtest/gtest.h>

#include "wire/stream_id.h"

namespace optcache::node {
namespace {

coordination::DesiredState TwoDatasets() {
  return {.datasets = {{.name = "vision/birds", .key = 1, .namespaces = {"vision", "speech"}},
                       {.name = "vision/secret", .key = 2, .namespaces = {"vision"}}}};
}

Caller PodOf(std::string name_space) {
  return {.name_space = std::move(name_space), .service_account = "default", .pod = "train-0"};
}

wire::StreamAttach AttachAs(const std::string& stream) {
  return {.dataset = 1,
          .dataset_name = "vision/birds",
          .stream = wire::StreamIdOf(stream, 0),
          .stream_name = stream};
}

wire::StreamAttach Attach() {
  return AttachAs("vision/job-2/birds/train");
}

void ExpectDenied(const Status& status, std::string_view part) {
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
}

TEST(MayUse, TheDatasetsOwnNamespaceAndThoseOfItsAccess) {
  const auto state = TwoDatasets();
  EXPECT_TRUE(MayUse(PodOf("vision"), state.datasets[0]).ok());
  EXPECT_TRUE(MayUse(PodOf("speech"), state.datasets[0]).ok());
  EXPECT_TRUE(MayUse(PodOf("vision"), state.datasets[1]).ok());
  ExpectDenied(MayUse(PodOf("speech"), state.datasets[1]), "namespace speech may not use");
}

TEST(MayUse, AStateWithoutNamespacesSharesNothing) {
  const coordination::DatasetState dataset{.name = "vision/birds"};
  EXPECT_TRUE(MayUse(PodOf("vision"), dataset).ok());
  EXPECT_FALSE(MayUse(PodOf("speech"), dataset).ok());
}

TEST(Owns, ANameThatOnlyBeginsAlikeIsAnothers) {
  EXPECT_TRUE(Owns("vision", "vision/birds"));
  EXPECT_FALSE(Owns("vis", "vision/birds"));
  EXPECT_FALSE(Owns("vision", "visions/birds"));
  EXPECT_FALSE(Owns("birds", "birds"));
}

TEST(MayAnnounce, AManifestThatRetires) {
  auto state = TwoDatasets();
  state.retiring = {{.name = "vision/birds", .key = 9, .namespaces = {"vision"}}};
  wire::StreamAttach attach = Attach();
  attach.dataset = 9;
  EXPECT_TRUE(MayAnnounce(PodOf("vision"), attach, state).ok());
}

TEST(MayConnect, OnlyUnderThePodsOwnName) {
  EXPECT_TRUE(MayConnect(PodOf("vision"), {.name = "vision/train-0"}).ok());
  ExpectDenied(MayConnect(PodOf("vision"), {.name = "vision/train-1"}), "vision/train-0");
  ExpectDenied(MayConnect(PodOf("vision"), {.name = "speech/train-0"}), "vision/train-0");
  ExpectDenied(MayConnect({.name_space = "vision", .service_account = "default"},
                          {.name = "vision/default"}),
               "not bound to a pod");
}

TEST(MayAnnounce, StreamsOfTheOwnNamespace) {
  EXPECT_TRUE(MayAnnounce(PodOf("vision"), Attach(), TwoDatasets()).ok());
}

TEST(MayAnnounce, NoStreamOfAnotherNamespaceEvenOfASharedDataset) {
  ExpectDenied(MayAnnounce(PodOf("speech"), Attach(), TwoDatasets()), "another namespace");
  const wire::StreamAttach own = AttachAs("speech/job-2/vision:birds/train");
  EXPECT_TRUE(MayAnnounce(PodOf("speech"), own, TwoDatasets()).ok());
}

TEST(MayAnnounce, NoDatasetThatIsNotShared) {
  wire::StreamAttach attach{.dataset = 2,
                            .dataset_name = "vision/secret",
                            .stream = 5,
                            .stream_name = "speech/job-2/vision:secret/train"};
  ExpectDenied(MayAnnounce(PodOf("speech"), attach, TwoDatasets()), "may not use");
  attach.dataset_name = "vision/unknown";
  attach.dataset = 9;
  ExpectDenied(MayAnnounce(PodOf("speech"), attach, TwoDatasets()), "knows no dataset");
}

// The state may come a moment later than the pod.
TEST(MayAnnounce, AnOwnDatasetThatIsNotKnownYet) {
  wire::StreamAttach attach = Attach();
  attach.dataset_name = "vision/new";
  attach.dataset = 9;
  EXPECT_TRUE(MayAnnounce(PodOf("vision"), attach, TwoDatasets()).ok());
}

TEST(MayAnnounce, NoOtherDatasetsManifestUnderAnAllowedName) {
  wire::StreamAttach attach = Attach();
  attach.dataset = 2;
  ExpectDenied(MayAnnounce(PodOf("vision"), attach, TwoDatasets()), "another dataset");
}

// Also before the other has come: ids can be computed by anybody.
TEST(MayAnnounce, NoIdOfAnotherStream) {
  wire::StreamAttach attach = Attach();
  attach.stream = wire::StreamIdOf("speech/job-2/vision:birds/train", 0);
  ExpectDenied(MayAnnounce(PodOf("vision"), attach, TwoDatasets()), "the id of another");
  attach.stream = wire::StreamIdOf(attach.stream_name, 3);
  ExpectDenied(MayAnnounce(PodOf("vision"), attach, TwoDatasets()), "the id of another");
  attach.incarnation = 3;
  EXPECT_TRUE(MayAnnounce(PodOf("vision"), attach, TwoDatasets()).ok());
}

}  // namespace
}  // namespace optcache::node
