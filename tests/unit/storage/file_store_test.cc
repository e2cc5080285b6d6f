#include "storage/file_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <latch>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "support/read_waiter.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FileStoreTest : public testing::Test {
 protected:
  std::unique_ptr<FileStore> Open(FileStoreOptions options = {}) {
    options.root = dir_.path();
    return FileStore::Open(std::move(options)).value();
  }
  ReadRequest Request(const std::string& object, std::string& into, ByteCount object_size,
                      ByteCount offset = 0) {
    return {.object = object,
            .offset = offset,
            .destination = std::as_writable_bytes(std::span(into)),
            .object_size = object_size,
            .validator = {},
            .deadline = Soon()};
  }
  static Deadline Soon() { return Deadline::After(SystemClock(), std::chrono::minutes(1)); }

  TempDir dir_;
};

TEST_F(FileStoreTest, ReadsWholeFilesAndRanges) {
  dir_.Write("a/b c.txt", "0123456789");
  const auto store = Open();
  std::string whole(10, '\0');
  EXPECT_TRUE(ReadWaiter().Run(*store, Request("a/b c.txt", whole, 10)).status.ok());
  EXPECT_EQ(whole, "0123456789");
  std::string part(3, '\0');
  EXPECT_TRUE(ReadWaiter().Run(*store, Request("a/b c.txt", part, 10, 4)).status.ok());
  EXPECT_EQ(part, "456");
}

TEST_F(FileStoreTest, ALinkThatLeadsOutIsNotFollowed) {
  const TempDir outside;
  outside.Write("secret", "s");
  dir_.Write("b", "s");
  std::filesystem::create_symlink(outside.Join("secret"), dir_.Join("a"));
  std::filesystem::create_symlink(dir_.Join("b"), dir_.Join("c"));
  std::string into(1, '.');
  const auto store = Open();
  const ReadOutcome out = ReadWaiter().Run(*store, Request("a", into, 1));
  EXPECT_EQ(out.status.code(), Code::kPermissionDenied);
  EXPECT_EQ(into, ".");
  EXPECT_TRUE(ReadWaiter().Run(*store, Request("c", into, 1)).status.ok());
}

TEST_F(FileStoreTest, FillsSeveralPlacesWithOneRead) {
  dir_.Write("a", "0123456789");
  std::string first(2, '.');
  std::string second(3, '.');
  ReadRequest request = Request("a", first, 10, 1);
  request.destination.Skip(3);
  request.destination.Add(std::as_writable_bytes(std::span(second)));
  EXPECT_TRUE(ReadWaiter().Run(*Open(), std::move(request)).status.ok());
  EXPECT_EQ(first, "12");
  EXPECT_EQ(second, "678");
}

TEST_F(FileStoreTest, ReadsFilesOfManySteps) {
  std::string content(5'000'001, '\0');
  for (size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<char>(i * 31 + i / 4096);
  dir_.Write("big", content);
  std::string into(content.size(), '\0');
  EXPECT_TRUE(ReadWaiter().Run(*Open(), Request("big", into, content.size())).status.ok());
  EXPECT_TRUE(into == content);
}

TEST_F(FileStoreTest, ReadsAnEmptyFile) {
  dir_.Write("empty", "");
  std::string none;
  EXPECT_TRUE(ReadWaiter().Run(*Open(), Request("empty", none, 0)).status.ok());
}

TEST_F(FileStoreTest, AMissingFileIsNotFoundAndNamed) {
  std::string into(1, '\0');
  const ReadOutcome outcome = ReadWaiter().Run(*Open(), Request("gone.jpg", into, 1));
  EXPECT_EQ(outcome.status.code(), Code::kNotFound);
  EXPECT_THAT(outcome.status.message(), HasSubstr("gone.jpg"));
}

TEST_F(FileStoreTest, AnotherSizeOrTimeIsAConflict) {
  dir_.Write("a", "0123");
  const auto store = Open();
  std::string into(3, '\0');
  EXPECT_EQ(ReadWaiter().Run(*store, Request("a", into, 3)).status.code(), Code::kConflict);
  const ObjectInfo info = store->Stat("a", Soon()).value();
  EXPECT_EQ(info.size, 4U);
  ReadRequest request = Request("a", into, 4);
  request.validator = info.validator;
  EXPECT_TRUE(ReadWaiter().Run(*store, request).status.ok());
  request.validator.modified_ns += 1;
  const ReadOutcome outcome = ReadWaiter().Run(*store, request);
  EXPECT_EQ(outcome.status.code(), Code::kConflict);
  EXPECT_THAT(outcome.status.message(),
              HasSubstr("a bytes 0-2 changed since the manifest was made"));
}

TEST_F(FileStoreTest, APipeOrAFolderIsRefusedAndDoesNotHang) {
  ASSERT_EQ(::mkfifo(dir_.Join("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(dir_.Join("folder"));
  const auto store = Open();
  std::string into(1, '\0');
  for (const std::string name : {"pipe", "folder"}) {
    const Status status = ReadWaiter().Run(*store, Request(name, into, 1)).status;
    EXPECT_EQ(status.code(), Code::kNotFound) << status.ToString();
  }
}

TEST_F(FileStoreTest, AnExpiredDeadlineEndsTheRead) {
  dir_.Write("a", "0");
  std::string into(1, '\0');
  ReadRequest request = Request("a", into, 1);
  request.deadline = Deadline(SystemClock().Now() - std::chrono::seconds(1));
  EXPECT_EQ(ReadWaiter().Run(*Open(), request).status.code(), Code::kDeadlineExceeded);
}

// A file of many pages, none of which is in the page cache.
class PageCacheTest : public FileStoreTest {
 protected:
  static constexpr size_t kPages = 64;

  void SetUp() override {
    dir_.Write("a", std::string(kPages * page_, 'x'));
    const UniqueFd fd(::open(dir_.Join("a").c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::fsync(fd.get()), 0);
    ASSERT_EQ(::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
    if (!Cached().empty()) GTEST_SKIP() << "the file system has its files in memory alone";
  }
  // The pages of the file that are in the page cache.
  std::vector<size_t> Cached() const {
    const UniqueFd fd(::open(dir_.Join("a").c_str(), O_RDONLY | O_CLOEXEC));
    void* map = ::mmap(nullptr, kPages * page_, PROT_READ, MAP_SHARED, fd.get(), 0);
    std::vector<unsigned char> there(kPages);
    EXPECT_EQ(::mincore(map, kPages * page_, there.data()), 0);
    ::munmap(map, kPages * page_);
    std::vector<size_t> cached;
    for (size_t page = 0; page < kPages; ++page) {
      if ((there[page] & 1U) != 0) cached.push_back(page);
    }
    return cached;
  }
  void Read(FileStore& store, ByteCount begin, ByteCount end, bool kept) {
    std::string into(end - begin, '.');
    ReadRequest request = Request("a", into, kPages * page_, begin);
    request.kept = kept;
    EXPECT_TRUE(ReadWaiter().Run(store, std::move(request)).status.ok());
    EXPECT_EQ(into, std::string(end - begin, 'x'));
  }

  const size_t page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
};

TEST_F(PageCacheTest, WhatIsKeptStaysInNoPage) {
  const auto store = Open();
  Read(*store, 0, kPages * page_, true);
  EXPECT_THAT(Cached(), IsEmpty());
}

TEST_F(PageCacheTest, WhatIsNotKeptStays) {
  const auto store = Open();
  Read(*store, 0, kPages * page_, false);
  EXPECT_EQ(Cached().size(), kPages);
}

TEST_F(PageCacheTest, PagesThatWereThereBeforeStay) {
  const auto store = Open();
  Read(*store, 0, kPages * page_, false);
  Read(*store, 0, kPages * page_, true);
  EXPECT_EQ(Cached().size(), kPages);
}

TEST_F(PageCacheTest, OfARangeThePagesStayThatItHasInPart) {
  const auto store = Open();
  Read(*store, 20 * page_ + 1, 24 * page_ - 1, true);
  EXPECT_THAT(Cached(), ElementsAre(20, 23)) << "and nothing was read ahead";
}

// A callback that blocks stands for a file system that hangs: it holds the store's only thread.
class BlockedFileStoreTest : public FileStoreTest {
 protected:
  void SetUp() override {
    dir_.Write("a", "0");
    store_ = Open({.threads = 1, .waiting_reads_max = 2});
    ASSERT_TRUE(store_
                    ->Read(Request("a", into_, 1),
                           [this](const ReadOutcome&) {
                             blocked_.count_down();
                             release_.wait();
                           })
                    .ok());
    blocked_.wait();
  }
  void TearDown() override { store_.reset(); }

  std::string into_ = "x";
  std::latch blocked_{1};
  std::latch release_{1};
  std::unique_ptr<FileStore> store_;
};

TEST_F(BlockedFileStoreTest, RefusesReadsWhenTooManyWait) {
  ReadWaiter first;
  ReadWaiter second;
  first.Start(*store_, Request("a", into_, 1));
  second.Start(*store_, Request("a", into_, 1));
  EXPECT_EQ(ReadWaiter().Run(*store_, Request("a", into_, 1)).status.code(),
            Code::kResourceExhausted);
  release_.count_down();
  EXPECT_TRUE(first.Wait().status.ok());
  EXPECT_TRUE(second.Wait().status.ok());
}

TEST_F(BlockedFileStoreTest, WaitingReadsEndAtTheirDeadline) {
  ReadRequest request = Request("a", into_, 1);
  request.deadline = Deadline::After(SystemClock(), std::chrono::milliseconds(1));
  EXPECT_EQ(ReadWaiter().Run(*store_, request).status.code(), Code::kDeadlineExceeded);
  release_.count_down();
}

TEST_F(BlockedFileStoreTest, ShutdownCancelsWhatWaitsAndRefusesWhatComes) {
  ReadWaiter waiting;
  waiting.Start(*store_, Request("a", into_, 1));
  std::jthread shutdown([this] { store_->Shutdown(); });
  EXPECT_EQ(waiting.Wait().status.code(), Code::kCancelled);
  EXPECT_EQ(ReadWaiter().Run(*store_, Request("a", into_, 1)).status.code(), Code::kCancelled);
  release_.count_down();
  shutdown.join();
  EXPECT_EQ(waiting.calls(), 1);
}

TEST_F(FileStoreTest, ListsWhatItReads) {
  dir_.Write("b", "1");
  dir_.Write("a/x", "22");
  const ObjectListing listing = Open()->List(Soon(), {}).value();
  ASSERT_EQ(listing.objects.size(), 2U);
  EXPECT_EQ(listing.objects[0].path, "a/x");
  EXPECT_EQ(listing.objects[0].info->size, 2U);
}

TEST_F(FileStoreTest, OpensFoldersOnly) {
  dir_.Write("file", "");
  EXPECT_EQ(FileStore::Open({.root = dir_.Join("none")}).error().code(), Code::kNotFound);
  EXPECT_EQ(FileStore::Open({.root = dir_.Join("file")}).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(FileStore::Open({.root = dir_.path() + "///"}).value()->name(),
            "file://" + dir_.path());
}

}  // namespace
}  // namespace optcache::storage
