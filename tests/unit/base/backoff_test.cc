#include "base/backoff.h"

#include <gtest/gtest.h>

namespace optcache {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, DoublesUpToTheLimitWithJitter) {
  Backoff backoff({.first = milliseconds(100), .limit = milliseconds(400)}, 7);
  for (const int whole : {100, 200, 400, 400}) {
    const Duration wait = backoff.Next();
    EXPECT_GE(wait, milliseconds(whole / 2));
    EXPECT_LE(wait, milliseconds(whole));
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), milliseconds(100));
}

}  // namespace
}  // namespace optcache
