#include "sidecar/client_desk.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

// While the sidecar stops, reads of the store still end, and trainers wait for what was read.
TEST(ClientDesk, AnswersAfterItsEndGoNowhere) {
  const auto shelf = DatasetShelf::Open({}, {}, "").value();
  ClientDesk desk(*shelf);
  desk.Close();
  desk.Reply(1, 2, 3, {{.status = Status(Code::kCancelled, "stopping"), .buffer = nullptr}});
  desk.Refuse(1, 3, Status(Code::kCancelled, "stopping"));
}

TEST(ClientDesk, WhoeverOpensADatasetWhoseManifestIsAwaitedIsToldWhyToAskAgain) {
  const auto shelf =
      DatasetShelf::Open({{.name = "vision/imagenet", .store_uri = "/tmp"}}, {}, "").value();
  ClientDesk desk(*shelf);
  const auto opened = desk.OnOpen(1, {.name = "vision/imagenet"});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), Code::kUnavailable);
  EXPECT_EQ(opened.error().message(),
            "dataset 'vision/imagenet' is not there yet: no node was asked for its manifest yet");
}

TEST(ClientDesk, ADatasetThatIsNotThereHasNoHandle) {
  const auto shelf =
      DatasetShelf::Open({{.name = "vision/imagenet", .store_uri = "/tmp"}}, {}, "").value();
  ClientDesk desk(*shelf);
  const auto attached = desk.OnAttach(1, {.dataset = 1});
  ASSERT_FALSE(attached.has_value());
  EXPECT_EQ(attached.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::sidecar
