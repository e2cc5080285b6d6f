#include "storage/internal/source_file.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"
#include "support/temp_dir.h"

namespace optcache::storage::internal {
namespace {

using testing::HasSubstr;

TEST(FileError, SaysAsWhomAFileIsRead) {
  const Status denied = FileError(EACCES, "a.jpg");
  EXPECT_EQ(denied.code(), Code::kPermissionDenied);
  EXPECT_THAT(denied.message(), HasSubstr("a.jpg"));
  EXPECT_THAT(denied.message(), HasSubstr("it is read as user "));
  const Status gone = FileError(ENOENT, "a.jpg");
  EXPECT_EQ(gone.code(), Code::kNotFound);
  EXPECT_EQ(gone.message().find("user"), std::string::npos);
}

// Training waits for it, as for any store that is away.
TEST(FileError, WhatAMountSaysWhileItsServerIsAwayCanPass) {
  for (const int error : {EIO, ESTALE, ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, EREMOTEIO,
                          ETIMEDOUT, ECONNREFUSED, ECONNRESET}) {
    const Status status = FileError(error, "a.jpg");
    EXPECT_EQ(status.code(), Code::kUnavailable) << error;
    EXPECT_THAT(status.message(), testing::StartsWith("a.jpg: "));
  }
  EXPECT_EQ(FileError(EISDIR, "a.jpg").code(), Code::kInternal);
}

TEST(CheckInside, KnowsFoldersByWholeNames) {
  EXPECT_TRUE(CheckInside("/data", "/data/a", "a").ok());
  EXPECT_TRUE(CheckInside("/data", "/data", "a").ok());
  EXPECT_TRUE(CheckInside("/", "/etc/passwd", "a").ok());
  const Status out = CheckInside("/data", "/database/a", "link.jpg");
  EXPECT_EQ(out.code(), Code::kPermissionDenied);
  EXPECT_THAT(out.message(), HasSubstr("link.jpg: a link that leads out of the source, to "));
}

TEST(CheckOpenInside, LooksBehindLinks) {
  const TempDir dir;
  dir.Write("in/a", "x");
  dir.Write("out/b", "x");
  std::filesystem::create_symlink("../out/b", dir.Join("in/link"));
  const std::string root = RealPath(dir.Join("in")).value();
  const UniqueFd inside(::open(dir.Join("in/a").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd outside(::open(dir.Join("in/link").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(CheckOpenInside(root, inside.get(), "a").ok());
  EXPECT_EQ(CheckOpenInside(root, outside.get(), "link").code(), Code::kPermissionDenied);
  EXPECT_EQ(RealPath(dir.Join("nowhere")).error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::storage::internal
