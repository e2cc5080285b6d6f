#include "net/service_pages.h"

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

TEST(ServicePages, AnswerEachPath) {
  Status ready = Status(Code::kUnavailable, "waiting for a test");
  const ServicePages pages = {.metrics = [] { return "a 1\n"; }, .ready = [&] { return ready; }};
  EXPECT_EQ(Answer(pages, "/metrics").body, "a 1\n");
  EXPECT_EQ(Answer(pages, "/healthz").status, 200);
  EXPECT_EQ(Answer(pages, "/readyz").status, 503);
  EXPECT_EQ(Answer(pages, "/readyz").body, "waiting for a test\n");
  ready = OkStatus();
  EXPECT_EQ(Answer(pages, "/readyz").status, 200);
  EXPECT_EQ(Answer(pages, "/").status, 404);
}

}  // namespace
}  // namespace optcache::net
