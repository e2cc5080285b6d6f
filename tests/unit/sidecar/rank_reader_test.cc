// Where the passes of a rank are taken to end.

#include "sidecar/prefetch/rank_reader.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

class RankReaderTest : public testing::Test {
 protected:
  static Attachment Says(std::uint64_t pass_reads, std::uint32_t behind = 0) {
    return {.recipe = {.size = 10, .world = 2}, .behind = behind, .pass_reads = pass_reads};
  }
  static PassSpan Span(PassNumber pass) {
    return {.pass = pass, .epoch = pass, .begin = 0, .end = 5};
  }
  // Begins a pass and reads so many of its five samples.
  void Read(PassNumber pass, std::uint64_t reads) {
    reader_.Begin(Span(pass), std::nullopt);
    if (reader_.current()->order() == nullptr) {
      reader_.current()->SetOrder(
          FakeOrders::Make({.recipe = reader_.attachment().recipe, .epoch = pass, .end = 5}));
    }
    for (std::uint64_t i = 0; i < reads; ++i) {
      reader_.current()->MarkAsked(i);
      reader_.current()->MarkDelivered(i);
    }
  }

  RankReader reader_{Says(0), 1};
};

TEST_F(RankReaderTest, PassesEndWhereTwoInARowHave) {
  Read(0, 2);
  Read(1, 3);
  Read(2, 3);
  EXPECT_EQ(reader_.pass_reads(), 0U) << "pass 2 may be read to its end";
  Read(3, 0);
  EXPECT_EQ(reader_.pass_reads(), 3U);
  EXPECT_EQ(reader_.current()->end(), 3U);
  Read(4, 3);
  EXPECT_EQ(reader_.pass_reads(), 3U) << "pass 3, of which nothing was read, says nothing";
  Read(5, 5);
  EXPECT_EQ(reader_.pass_reads(), 0U) << "it goes on";
  EXPECT_EQ(reader_.ProgressMessage().position, 10U);
  Read(6, 3);
  Read(7, 3);
  EXPECT_EQ(reader_.pass_reads(), 0U);
  Read(8, 1);
  EXPECT_EQ(reader_.pass_reads(), 3U);
  Read(9, 0);
  EXPECT_EQ(reader_.pass_reads(), 0U) << "it ended elsewhere";
}

TEST_F(RankReaderTest, PassesEndWhereTheTrainerSaysUntilItReadsMore) {
  reader_ = RankReader(Says(2), 1);
  EXPECT_EQ(reader_.pass_reads(), 2U);
  Read(0, 1);
  Read(1, 2);
  EXPECT_EQ(reader_.pass_reads(), 2U) << "one that is left before is left";
  Read(2, 4);
  Read(3, 2);
  EXPECT_EQ(reader_.pass_reads(), 0U);
  reader_.Reopen(Says(2), 2);
  EXPECT_EQ(reader_.pass_reads(), 0U) << "said again after a reconnect";
  reader_.Reopen(Says(4), 2);
  EXPECT_EQ(reader_.pass_reads(), 4U) << "another loader";
}

TEST_F(RankReaderTest, WorkersMayBeAheadOfTheEnd) {
  reader_ = RankReader(Says(2, 3), 1);
  Read(0, 4);
  EXPECT_EQ(reader_.pass_reads(), 2U);
  EXPECT_EQ(reader_.ProgressMessage().position, 4U) << "the trainer has not read those";
  Read(1, 2);
  EXPECT_EQ(reader_.pass_reads(), 2U);
}

TEST_F(RankReaderTest, APassThatBeginsBehindTheEndIsReadToItsEnd) {
  reader_ = RankReader(Says(2), 1);
  reader_.Begin({.begin = 3, .end = 5}, std::nullopt);
  EXPECT_EQ(reader_.current()->end(), 5U);
  EXPECT_EQ(reader_.ProgressMessage().position, 6U);
}

TEST_F(RankReaderTest, TheNextPassIsPredictedFromTheMiddleOfWhatIsRead) {
  reader_ = RankReader(Says(2), 1);
  Read(0, 0);
  EXPECT_FALSE(reader_.Predict());
  reader_.current()->PassOver(0);
  EXPECT_TRUE(reader_.Predict());
  EXPECT_EQ(reader_.next()->end(), 2U);
  EXPECT_EQ(reader_.next()->span(), Span(1)) << "of the whole list";
}

}  // namespace
}  // namespace optcache::sidecar
