#include "storage/wait_table.h"

#include <gtest/gtest.h>

namespace optcache::storage {
namespace {

using std::chrono::seconds;

class WaitTableTest : public testing::Test {
 protected:
  static MonotonicTime At(int second) { return MonotonicTime() + seconds(second); }

  int first_ = 0;
  int second_ = 0;
  WaitTable table_;
};

TEST_F(WaitTableTest, NothingWaitsAtFirst) {
  EXPECT_EQ(table_.At(At(1)).requests, 0U);
  EXPECT_EQ(table_.Tell(At(100)), std::nullopt);
  EXPECT_EQ(table_.tell_at(), MonotonicTime::max());
}

TEST_F(WaitTableTest, NamesTheOneThatHasWaitedLongest) {
  table_.Note(&second_, At(3), "b: HTTP 503");
  table_.Note(&first_, At(1), "a: refused");
  table_.Note(&first_, At(1), "a: reset");
  const StoreWaits waits = table_.At(At(5));
  EXPECT_EQ(waits.requests, 2U);
  EXPECT_EQ(waits.longest, seconds(4));
  EXPECT_EQ(waits.cause, "a: reset");
  table_.Forget(&first_);
  EXPECT_EQ(table_.At(At(5)).longest, seconds(2));
  table_.Forget(&first_);
  table_.Forget(&second_);
  EXPECT_EQ(table_.At(At(5)).requests, 0U);
}

TEST_F(WaitTableTest, TellsEveryTenSecondsOfWhatHasWaitedForAsLong) {
  table_.Note(&first_, At(100), "a: refused");
  EXPECT_LT(table_.tell_at(), At(110));
  EXPECT_FALSE(table_.Tell(At(109)).has_value());
  EXPECT_EQ(table_.tell_at(), At(110));
  EXPECT_TRUE(table_.Tell(At(110)).has_value());
  EXPECT_FALSE(table_.Tell(At(119)).has_value());
  EXPECT_EQ(table_.Tell(At(121))->longest, seconds(21));
  table_.Forget(&first_);
  EXPECT_FALSE(table_.Tell(At(140)).has_value());
}

TEST_F(WaitTableTest, ProgressBeginsTheWaitAgain) {
  table_.Note(&first_, At(100), "a: refused");
  table_.Note(&first_, At(108), "a: cut");
  EXPECT_FALSE(table_.Tell(At(110)).has_value());
  EXPECT_EQ(table_.At(At(110)).longest, seconds(2));
}

}  // namespace
}  // namespace optcache::storage
