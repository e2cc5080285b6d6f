#include "sidecar/programs/termination.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::sidecar {
namespace {

using Json = nlohmann::json;

TEST(Termination, SaysWhatWasIndexed) {
  const std::string message = TerminationMessage(
      {.digest = "00ff", .samples = 14059, .bytes = 133333333, .largest = 1234567});
  EXPECT_EQ(message,
            "{\"digest\":\"00ff\",\"samples\":14059,\"bytes\":133333333,\"largest\":1234567}\n");
}

TEST(Termination, SaysWhatChanged) {
  const Json message = Json::parse(TerminationMessage(
      {.digest = "00ff",
       .samples = 1,
       .changes = dataset::ManifestChanges{.added = {.count = 3, .first = "a.jpg"}}}));
  EXPECT_EQ(message["changes"], Json({{"added", {{"count", 3}, {"first", "a.jpg"}}},
                                      {"changed", {{"count", 0}}},
                                      {"removed", {{"count", 0}}}}));
}

TEST(Termination, NamesOfChangedObjectsAreCut) {
  const dataset::ChangedObjects worst{.count = ~std::uint64_t{0},
                                      .first = std::string(4096, '\x01')};
  const std::string message = TerminationMessage(
      {.digest = std::string(64, 'f'),
       .samples = ~std::uint64_t{0},
       .bytes = ~ByteCount{0},
       .largest = ~ByteCount{0},
       .changes = dataset::ManifestChanges{.added = worst, .changed = worst, .removed = worst}});
  EXPECT_LT(message.size(), 4096U);
}

TEST(Termination, NamesTheReasonBesideTheSentence) {
  const Json message =
      Json::parse(TerminationMessage(IndexStep::kSource, {Code::kUnavailable, "502 from store"}));
  EXPECT_EQ(message["reason"], "SourceUnreachable");
  EXPECT_EQ(message["message"], "502 from store");
}

TEST(Termination, ReasonsTellApartWhoHasToDoSomething) {
  EXPECT_EQ(ReasonOf(IndexStep::kSource, Code::kDeadlineExceeded), "SourceUnreachable");
  EXPECT_EQ(ReasonOf(IndexStep::kSource, Code::kPermissionDenied), "SourceForbidden");
  EXPECT_EQ(ReasonOf(IndexStep::kSource, Code::kConflict), "SourceChanged");
  EXPECT_EQ(ReasonOf(IndexStep::kSource, Code::kInvalidArgument), "SourceInvalid");
  EXPECT_EQ(ReasonOf(IndexStep::kSource, Code::kNotFound), "SourceInvalid");
  EXPECT_EQ(ReasonOf(IndexStep::kUpload, Code::kUnavailable), "NodesUnreachable");
  EXPECT_EQ(ReasonOf(IndexStep::kUpload, Code::kPermissionDenied), "ManifestRefused");
  EXPECT_EQ(ReasonOf(IndexStep::kUpload, Code::kResourceExhausted), "ManifestRefused");
}

// Kubernetes cuts at 4096 bytes, in the middle of the JSON.
TEST(Termination, StaysBelowWhatKubernetesKeeps) {
  const std::string worst(100'000, '\x01');
  const std::string message =
      TerminationMessage(IndexStep::kSource, {Code::kInvalidArgument, worst});
  EXPECT_LE(message.size(), 4096U);
  EXPECT_TRUE(Json::accept(message));
}

TEST(Termination, SaysWhatWasMeasured) {
  const Json said = Json::parse(TerminationMessage(
      {.state = headspace::State::kDone, .message = "So.", .loader = "", .what_if = {}}));
  EXPECT_EQ(said["headspace"]["state"], "done");
  EXPECT_EQ(said["headspace"]["message"], "So.");
}

TEST(Termination, SaysWhatWasSaved) {
  EXPECT_EQ(Json::parse(SavedMessage("saved 9 requests.")),
            Json({{"saved", {{"message", "saved 9 requests."}}}}));
  EXPECT_EQ(SavedMessage(""), "");
  EXPECT_LE(SavedMessage(std::string(100'000, '\x01')).size(), 4096U);
}

TEST(Termination, AWarmUpSaysWhereItWas) {
  const Json said = Json::parse(WarmedMessage("node\"1", R"({"samples":5})"));
  EXPECT_EQ(said, Json({{"at", "node\"1"}, {"samples", 5}}));
}

TEST(Termination, APathThatIsNoTextIsNoHindrance) {
  const std::string message =
      TerminationMessage(IndexStep::kSource, {Code::kInvalidArgument, "\xff\xfe.jpg"});
  EXPECT_TRUE(Json::accept(message));
}

}  // namespace
}  // namespace optcache::sidecar
