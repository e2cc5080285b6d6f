#include "cache/segment_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "base/crc32c.h"
#include "base/mutex.h"
#include "base/random.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace optcache::cache {
namespace {

constexpr SegmentName kName{.dataset = 0xabc, .number = 1};

SegmentContent ContentOf(const SegmentName& name, std::vector<ByteCount> sizes) {
  SegmentContent content{.name = name, .records = {}, .samples = {}};
  Random random(name.number);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto bytes = std::make_shared<SampleBytes>(sizes[i]);
    for (std::byte& byte : bytes->writable())
      byte = static_cast<std::byte>(random.Next());
    content.records.push_back({.id = static_cast<SampleId>(i),
                               .length = static_cast<std::uint32_t>(sizes[i]),
                               .crc = Crc32c(bytes->bytes()),
                               .kept_after = {}});
    content.samples.push_back(bytes);
  }
  return content;
}

SegmentRead ReadOf(const SegmentContent& content, std::size_t i) {
  const auto count = static_cast<std::uint32_t>(content.records.size());
  return {.name = content.name,
          .extent = SegmentExtents(content.records, count)[i],
          .crc = content.records[i].crc};
}

void ExpectAll(const std::string& path, const SegmentContent& content) {
  for (std::size_t i = 0; i < content.records.size(); ++i) {
    const auto read = ReadSegment(path, ReadOf(content, i));
    ASSERT_TRUE(read) << i << ": " << read.error().ToString();
    ASSERT_TRUE(std::ranges::equal((*read)->bytes(), content.samples[i]->bytes())) << i;
  }
}

void Flip(const std::string& path, ByteCount at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 0x40));
}

TEST(SegmentFiles, ReadsWhatWasWritten) {
  const TempDir dir;
  const std::string path = SegmentPath(dir.path(), kName);
  const SegmentContent content =
      ContentOf(kName, {1, 0, 4096, 5000, 3 * 1024 * 1024 + 7, 4095, 100'000});
  ASSERT_TRUE(WriteSegment(path, content).ok());
  EXPECT_EQ(std::filesystem::file_size(path), SegmentFileBytes(content.records));
  ExpectAll(path, content);
}

// Where O_DIRECT is refused, the page cache is used, and left.
TEST(SegmentFiles, AFileSystemInMemoryWillDo) {
  struct stat shared{};
  if (::stat("/dev/shm", &shared) != 0) GTEST_SKIP() << "no /dev/shm";
  std::string folder = "/dev/shm/optcache_segment_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = SegmentPath(folder, kName);
  const SegmentContent content = ContentOf(kName, {5000, 2 * 1024 * 1024, 3});
  EXPECT_TRUE(WriteSegment(path, content).ok());
  ExpectAll(path, content);
  EXPECT_TRUE(FindSegments(folder).has_value());
  std::filesystem::remove_all(folder);
}

TEST(SegmentFiles, NeverWritesOverAnother) {
  const TempDir dir;
  const std::string path = SegmentPath(dir.path(), kName);
  ASSERT_TRUE(WriteSegment(path, ContentOf(kName, {10})).ok());
  EXPECT_FALSE(WriteSegment(path, ContentOf(kName, {10})).ok());
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(SegmentFiles, FindsWhatIsThere) {
  const TempDir dir;
  const SegmentContent one = ContentOf(kName, {5000, 6000});
  const SegmentContent two = ContentOf({.dataset = 0xdef, .number = 9}, {70'000});
  ASSERT_TRUE(WriteSegment(SegmentPath(dir.path(), one.name), one).ok());
  ASSERT_TRUE(WriteSegment(SegmentPath(dir.path(), two.name), two).ok());
  dir.Write("0000000000000abc/0000000000000005.segment", "garbage");
  dir.Write("0000000000000abc/0000000000000006.segment", "");
  const std::string other_version = "0000000000000abc/0000000000000007.segment";
  dir.Write(other_version, "OCSEGM99" + std::string(4096, '\0'));
  dir.Write("0000000000000abc/notes.txt", "garbage");
  dir.Write("somebody/else.txt", "stays");
  const auto found = FindSegments(dir.path());
  ASSERT_TRUE(found) << found.error().ToString();
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].name, one.name);
  EXPECT_EQ((*found)[0].segment.records, one.records);
  EXPECT_GE((*found)[0].file_bytes, 12'288U);
  EXPECT_EQ((*found)[1].name, two.name);
  EXPECT_FALSE(std::filesystem::exists(dir.Join("0000000000000abc/0000000000000005.segment")));
  EXPECT_FALSE(std::filesystem::exists(dir.Join(other_version)));
  EXPECT_FALSE(std::filesystem::exists(dir.Join("0000000000000abc/notes.txt")));
  EXPECT_TRUE(std::filesystem::exists(dir.Join("somebody/else.txt")));
}

TEST(SegmentFiles, WhatCannotBeOpenedStays) {
  const TempDir dir;
  const SegmentContent content = ContentOf(kName, {5000, 6000});
  const std::string path = SegmentPath(dir.path(), kName);
  ASSERT_TRUE(WriteSegment(path, content).ok());
  std::filesystem::rename(path, dir.Join("aside"));
  std::filesystem::create_symlink(path, path);  // a loop, which root cannot open, either
  const auto unread = FindSegments(dir.path());
  ASSERT_TRUE(unread) << unread.error().ToString();
  ASSERT_EQ(unread->size(), 1U);
  EXPECT_EQ((*unread)[0].name, kName);
  EXPECT_FALSE((*unread)[0].status.ok());
  EXPECT_TRUE((*unread)[0].segment.records.empty());
  EXPECT_TRUE(std::filesystem::is_symlink(path));

  std::filesystem::rename(dir.Join("aside"), path);
  const auto read = FindSegments(dir.path());
  ASSERT_TRUE(read) << read.error().ToString();
  ASSERT_EQ(read->size(), 1U);
  EXPECT_TRUE((*read)[0].status.ok());
  EXPECT_EQ((*read)[0].segment.records, content.records);
}

TEST(SegmentFiles, WhatIsNoFileIsRemoved) {
  const TempDir dir;
  ASSERT_TRUE(WriteSegment(SegmentPath(dir.path(), kName), ContentOf(kName, {5000})).ok());
  const std::string folder = dir.Join("0000000000000abc/0000000000000002.segment");
  const std::string pipe = dir.Join("0000000000000abc/0000000000000003.segment");
  const std::string socket = dir.Join("0000000000000abc/0000000000000004.segment");
  std::filesystem::create_directories(folder + "/more");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  const auto found = FindSegments(dir.path());  // nobody writes to the pipe: it does not wait
  ASSERT_TRUE(found) << found.error().ToString();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].name, kName);
  for (const std::string& path : {folder, pipe, socket})
    EXPECT_FALSE(std::filesystem::exists(path)) << path;
}

TEST(SegmentFiles, MakesItsFolder) {
  const TempDir dir;
  EXPECT_TRUE(FindSegments(dir.Join("new/optcache"))->empty());
  EXPECT_TRUE(std::filesystem::is_directory(dir.Join("new/optcache")));
  dir.Write("file", "");
  EXPECT_FALSE(FindSegments(dir.Join("file/optcache")));
}

// As a machine that loses its power may leave it, at every length that ends within a block's bytes
// or between them.
TEST(SegmentFiles, ATruncatedFileGivesWhatIsWhole) {
  const TempDir dir;
  const std::string path = SegmentPath(dir.path(), kName);
  const SegmentContent content = ContentOf(kName, {5000, 3000, 20'000, 10});
  const ByteCount whole = ReadOf(content, 3).extent.end;
  for (ByteCount length = 0; length < whole; length += 1531) {
    std::filesystem::remove(path);
    ASSERT_TRUE(WriteSegment(path, content).ok());
    std::filesystem::resize_file(path, length);
    const auto found = FindSegments(dir.path());
    ASSERT_TRUE(found);
    if (length < kSegmentHeaderBytes) {
      ASSERT_TRUE(found->empty());
      ASSERT_FALSE(std::filesystem::exists(path));
      continue;
    }
    const Segment& segment = found->front().segment;
    ASSERT_TRUE(segment.torn);
    for (std::size_t i = 0; i < segment.records.size(); ++i)
      ASSERT_LE(segment.extents[i].end, length);
  }
}

TEST(SegmentFiles, AFlippedBitIsFoundWhenItIsRead) {
  const TempDir dir;
  const std::string path = SegmentPath(dir.path(), kName);
  const SegmentContent content = ContentOf(kName, {5000, 3000});
  ASSERT_TRUE(WriteSegment(path, content).ok());
  Flip(path, ReadOf(content, 1).extent.begin + 1234);
  EXPECT_TRUE(ReadSegment(path, ReadOf(content, 0)));
  EXPECT_EQ(ReadSegment(path, ReadOf(content, 1)).error().code(), Code::kDataLoss);
}

TEST(SegmentFiles, WhatIsMissingIsAnError) {
  const TempDir dir;
  const std::string path = SegmentPath(dir.path(), kName);
  const SegmentContent content = ContentOf(kName, {5000, 30'000});
  EXPECT_EQ(ReadSegment(path, ReadOf(content, 0)).error().code(), Code::kNotFound);
  ASSERT_TRUE(WriteSegment(path, content).ok());
  std::filesystem::resize_file(path, 12'288);
  EXPECT_EQ(ReadSegment(path, ReadOf(content, 1)).error().code(), Code::kDataLoss);
}

TEST(SegmentFiles, HolesAreRememberedByTheFile) {
  const TempDir dir;
  const std::string path = SegmentPath(dir.path(), kName);
  const SegmentContent content = ContentOf(kName, {50'000, 200'000, 50'000});
  ASSERT_TRUE(WriteSegment(path, content).ok());
  const auto before = FindSegments(dir.path());
  const Extent sample = ReadOf(content, 1).extent;
  const Extent hole{.begin = RoundUpToBlock(sample.begin), .end = RoundDownToBlock(sample.end)};
  const Status punched = PunchSegment(path, hole);
  if (punched.code() == Code::kInvalidArgument) GTEST_SKIP() << punched.message();
  ASSERT_TRUE(punched.ok()) << punched.ToString();
  const auto after = FindSegments(dir.path());
  EXPECT_THAT(after->front().segment.present, testing::ElementsAre(true, false, true));
  EXPECT_EQ(after->front().file_bytes, before->front().file_bytes - hole.size());
  EXPECT_TRUE(ReadSegment(path, ReadOf(content, 0)));
  EXPECT_EQ(ReadSegment(path, ReadOf(content, 1)).error().code(), Code::kDataLoss);
  EXPECT_TRUE(ReadSegment(path, ReadOf(content, 2)));
}

// More than any disk has: the room is taken before anything is written.
TEST(SegmentFiles, NothingIsLeftOfWhatCouldNotBeWritten) {
  const TempDir dir;
  const std::string path = SegmentPath(dir.path(), kName);
  SegmentContent content = ContentOf(kName, {1});
  content.records.assign(kSegmentRecordsMax, {.length = 0xffffffffU});
  EXPECT_FALSE(WriteSegment(path, content).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
}

// Ends its calls where its owner says.
struct SegmentFilesOnThreads : testing::Test {
  SegmentFiles::Post post = [this](std::function<void()> call) {
    const MutexLock lock(mutex);
    calls.push_back(std::move(call));
    come.NotifyAll();
  };
  void RunOne() {
    std::function<void()> call;
    {
      MutexLock lock(mutex);
      while (calls.empty())
        come.WaitUntil(mutex, SystemClock().Now() + std::chrono::seconds(1));
      call = std::move(calls.front());
      calls.erase(calls.begin());
    }
    call();
  }

  Mutex mutex;
  CondVar come;
  std::vector<std::function<void()>> calls GUARDED_BY(mutex);
  TempDir dir;
  ManualClock clock;
  DiskThreads threads{SystemClock(), {.threads = 2, .max_writing = 1}};
  SegmentFiles files{dir.path(), threads, clock, post};
};

TEST_F(SegmentFilesOnThreads, WritesReadsGivesBackAndRemoves) {
  const SegmentContent content = ContentOf(kName, {5000, 100'000});
  Status status(Code::kInternal, "not called back");
  const auto take = [&status](const Status& given) { status = given; };
  files.Write(content, take);
  RunOne();
  EXPECT_TRUE(status.ok()) << status.ToString();
  SegmentRead read = ReadOf(content, 1);
  read.deadline = clock.Now() + std::chrono::seconds(1);
  Result<SampleRef> sample = Error(Code::kInternal, "not called back");
  files.Read(read, [&sample](Result<SampleRef> given) { sample = std::move(given); });
  RunOne();
  ASSERT_TRUE(sample) << sample.error().ToString();
  EXPECT_EQ((*sample)->size(), 100'000U);
  status = Status(Code::kInternal, "not called back");
  files.Punch(kName, {.begin = 12'288, .end = 16'384}, take);
  RunOne();
  EXPECT_TRUE(status.ok() || status.code() == Code::kInvalidArgument);
  files.Remove(kName, take);
  RunOne();
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(std::filesystem::exists(SegmentPath(dir.path(), kName)));
}

TEST_F(SegmentFilesOnThreads, AReadThatIsTooLateDoesNotBegin) {
  Result<SampleRef> sample = Error(Code::kInternal, "not called back");
  files.Read({.name = kName, .extent = {}, .deadline = clock.Now()},
             [&sample](Result<SampleRef> given) { sample = std::move(given); });
  RunOne();
  EXPECT_EQ(sample.error().code(), Code::kDeadlineExceeded);
}

}  // namespace
}  // namespace optcache::cache
