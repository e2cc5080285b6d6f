#include "operator/reconcile/cluster/cordons.h"

#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

using Nodes = std::set<std::string>;

TEST(Cordons, AreMeantOnceTheyHaveLasted) {
  Cordons cordons;
  const MonotonicTime start;
  const MonotonicTime later = start + kCordonIsMeantAfter / 2;
  cordons.Observe({"a"}, start);
  cordons.Observe({"a", "b"}, later);
  EXPECT_EQ(cordons.Meant(later), Nodes());
  EXPECT_EQ(cordons.Meant(start + kCordonIsMeantAfter), Nodes{"a"});
  EXPECT_EQ(cordons.Meant(later + kCordonIsMeantAfter), (Nodes{"a", "b"}));
}

TEST(Cordons, BeginAnewAfterAnUncordon) {
  Cordons cordons;
  const MonotonicTime start;
  const MonotonicTime again = start + kCordonIsMeantAfter / 2;
  cordons.Observe({"a"}, start);
  cordons.Observe({}, start);
  cordons.Observe({"a"}, again);
  EXPECT_EQ(cordons.Meant(start + kCordonIsMeantAfter), Nodes());
  EXPECT_EQ(cordons.Meant(again + kCordonIsMeantAfter), Nodes{"a"});
}

}  // namespace
}  // namespace optcache::reconcile
