#include "sidecar/prefetch/order_replayer.h"

#include <gtest/gtest.h>

#include "sampler/order_crc.h"

namespace optcache::sidecar {
namespace {

RankPassRequest Request(Rank rank, std::uint64_t epoch = 4) {
  return {.recipe = {.size = 1000, .seed = 3, .world = 3},
          .epoch = epoch,
          .rank = rank,
          .begin = 10,
          .end = 300};
}

std::vector<SampleId> RankOrder(Rank rank, std::uint64_t epoch) {
  return sampler::OrderSource::Make(Request(rank).recipe)->RankOrder(epoch, rank).value();
}

TEST(MakeRankPass, TakesTheRanksPartAndTheCrcOfWhatIsRead) {
  const std::vector<SampleId> all = {5, 6, 7, 8, 5, 9};
  const RankPass pass =
      MakeRankPass(all, {.recipe = {.size = 10, .world = 2}, .rank = 0, .begin = 1, .end = 3});
  EXPECT_EQ(pass.ids, (std::vector<SampleId>{5, 7, 5}));
  EXPECT_EQ(pass.by_id, (std::vector<std::uint32_t>{0, 2, 1}));
  EXPECT_EQ(pass.crc, sampler::OrderCrc(std::vector<SampleId>{7, 5}));
}

TEST(OrderReplayer, AnswersOnTheLoopInTheOrderAskedFor) {
  net::EventLoop loop;
  OrderReplayer replayer(loop, SystemClock());
  std::vector<std::pair<Rank, std::vector<SampleId>>> answers;
  for (const Rank rank : {0U, 1U, 2U, 0U}) {
    replayer.Replay(Request(rank, rank + 4), [&, rank](auto pass) {
      answers.emplace_back(rank, pass.value()->ids);
      if (answers.size() == 4) loop.Stop();
    });
  }
  loop.Run();
  for (const auto& [rank, ids] : answers)
    EXPECT_EQ(ids, RankOrder(rank, rank + 4));
  EXPECT_EQ(answers[3].first, 0U);
}

TEST(OrderReplayer, SaysWhatIsWrongWithARecipe) {
  net::EventLoop loop;
  OrderReplayer replayer(loop, SystemClock());
  Status status;
  RankPassRequest request = Request(0);
  request.recipe.world = 0;
  replayer.Replay(request, [&](const auto& pass) {
    status = pass.error();
    loop.Stop();
  });
  loop.Run();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace optcache::sidecar
