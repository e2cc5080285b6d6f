#include "base/status.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(Status, SaysCodeAndMessage) {
  EXPECT_EQ(OkStatus().ToString(), "ok");
  EXPECT_EQ(Status(Code::kNotFound, "no such file").WithContext("open a").ToString(),
            "not_found: open a: no such file");
}

TEST(Status, ContextOfOkStaysOk) {
  EXPECT_TRUE(Status().WithContext("anything").ok());
}

TEST(ErrnoStatus, MapsErrnoToWhatTheCallerDoesNext) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "x").code(), Code::kNotFound);
  EXPECT_EQ(ErrnoStatus(EACCES, "x").code(), Code::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(ENOSPC, "x").code(), Code::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(ECONNREFUSED, "x").code(), Code::kUnavailable);
  EXPECT_EQ(ErrnoStatus(EIO, "read a").message(), "read a: Input/output error");
}

}  // namespace
}  // namespace optcache
