#include "cache-node/retention/node_disk.h"

#include <chrono>
#include <filesystem>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "cache/tiering.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace optcache::node {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kDataset = 0xabc;

struct NodeDiskTest : testing::Test {
  Result<std::unique_ptr<NodeDisk>> Open(const std::string& path) {
    return NodeDisk::Open(loop, clock, path, 1_MiB);
  }
  // A link to itself cannot be opened, not even by root.
  std::string AddUnreadable(const std::string& number) {
    std::filesystem::create_directories(dir.Join("optcache/0000000000000abc"));
    const std::string name = number + ".segment";
    std::filesystem::create_symlink(name, dir.Join("optcache/0000000000000abc/" + name));
    return dir.Join("optcache/0000000000000abc/" + name);
  }
  void Write(cache::DiskTier& tier, SampleId id, std::vector<Status>& written) {
    const auto bytes = std::make_shared<cache::SampleBytes>(5000);
    const cache::SegmentRecord record{
        .id = id, .length = 5000, .crc = Crc32c(bytes->bytes()), .kept_after = {}};
    const Status begun = tier.Write({{.record = record, .bytes = bytes}}, clock.Now(),
                                    [this, &written](const Status& status) {
                                      written.push_back(status);
                                      loop.Stop();
                                    });
    EXPECT_TRUE(begun.ok()) << begun.ToString();
  }

  ManualClock clock;
  net::EventLoop loop;
  TempDir dir;
};

TEST_F(NodeDiskTest, AFolderIsOneNodes) {
  auto first = Open(dir.path());
  ASSERT_TRUE(first) << first.error().ToString();
  // What the first one is writing is no segment yet, and not the second one's to remove.
  const std::string half = "optcache/0000000000000abc/0000000000000005.segment";
  dir.Write(half, "half");
  const auto second = Open(dir.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kConflict);
  EXPECT_THAT(second.error().message(), HasSubstr(dir.Join("optcache")));
  EXPECT_THAT(second.error().message(), HasSubstr("--disk"));
  EXPECT_TRUE(std::filesystem::exists(dir.Join(half)));
  EXPECT_TRUE(Open(dir.Join("other")));

  first->reset();
  EXPECT_TRUE(Open(dir.path()));
  EXPECT_FALSE(std::filesystem::exists(dir.Join(half)));
}

TEST_F(NodeDiskTest, AFolderThatCannotBeMadeIsAnError) {
  dir.Write("file", "no folder");
  const auto disk = Open(dir.Join("file"));
  ASSERT_FALSE(disk);
  EXPECT_THAT(disk.error().message(), HasSubstr(dir.Join("file/optcache")));
}

TEST_F(NodeDiskTest, SegmentsThatCannotBeReadAreLogged) {
  SetUpLog("node_disk_test", LogLevel::kInfo, LogFormat::kText);
  const std::string link = AddUnreadable("0000000000000005");
  testing::internal::CaptureStderr();
  const auto disk = Open(dir.path());
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(disk) << disk.error().ToString();
  EXPECT_THAT(log, HasSubstr("segments cannot be read"));
  EXPECT_THAT(log, HasSubstr(link));
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

// Their files stay when their dataset goes, and are not in the way when it comes back.
TEST_F(NodeDiskTest, ADatasetThatComesBackIsWrittenBesideSegmentsThatCannotBeRead) {
  AddUnreadable("0000000000000001");
  const auto disk = Open(dir.path());
  ASSERT_TRUE(disk) << disk.error().ToString();
  (*disk)->KeepOnly({});
  (*disk)->Tick();
  std::vector<Status> written;
  Write(*(*disk)->TierOf(kDataset), 1, written);
  loop.Run();
  ASSERT_EQ(written.size(), 1U);
  EXPECT_TRUE(written[0].ok()) << written[0].ToString();
  EXPECT_FALSE((*disk)->state().failed());
}

TEST_F(NodeDiskTest, ADatasetComesBackWhileItIsStillWritten) {
  const auto disk = Open(dir.path());
  ASSERT_TRUE(disk) << disk.error().ToString();
  std::vector<Status> written;
  Write(*(*disk)->TierOf(kDataset), 1, written);
  (*disk)->KeepOnly({});
  Write(*(*disk)->TierOf(kDataset), 1, written);
  while (written.size() < 2)
    loop.Run();
  EXPECT_TRUE(written[0].ok()) << written[0].ToString();
  EXPECT_TRUE(written[1].ok()) << written[1].ToString();
  EXPECT_FALSE((*disk)->state().failed());
}

TEST_F(NodeDiskTest, RoomOfSegmentsThatCannotBeReadIsNotOffered) {
  const auto disk = Open(dir.path());
  ASSERT_TRUE(disk) << disk.error().ToString();
  EXPECT_EQ((*disk)->offered(), cache::DiskPayload(1_MiB));
  (*disk)->state().OnUnread(256_KiB);
  EXPECT_EQ((*disk)->offered(), cache::DiskPayload(768_KiB));
}

// One line for each time that it rests, not for each tick.
TEST_F(NodeDiskTest, AFullDiskIsLogged) {
  SetUpLog("node_disk_test", LogLevel::kInfo, LogFormat::kText);
  const auto disk = Open(dir.path());
  ASSERT_TRUE(disk) << disk.error().ToString();
  const auto lines = [&] {
    testing::internal::CaptureStderr();
    (*disk)->Tick();
    (*disk)->Tick();
    std::istringstream log(testing::internal::GetCapturedStderr());
    int count = 0;
    for (std::string line; std::getline(log, line);) {
      count += line.contains("the disk is full") && line.contains(dir.path()) ? 1 : 0;
    }
    return count;
  };
  const auto fill = [&] {
    (*disk)->state().OnWritten({Code::kResourceExhausted, "no space"}, 0, 0, clock.Now());
  };
  EXPECT_EQ(lines(), 0);
  fill();
  EXPECT_EQ(lines(), 1);
  fill();  // what was being written at that time
  EXPECT_EQ(lines(), 0);
  clock.Advance(std::chrono::minutes(2));
  EXPECT_EQ(lines(), 0);
  fill();
  EXPECT_EQ(lines(), 1);
}

}  // namespace
}  // namespace optcache::node
