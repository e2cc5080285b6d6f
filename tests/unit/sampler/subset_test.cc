#include "sampler/subset.h"

#include <vector>

#include <gtest/gtest.h>

#include "sampler/order_source.h"

namespace optcache::sampler {
namespace {

using Ids = std::vector<SampleId>;

TEST(Subset, MapsThroughTheRangesInTheirOrder) {
  Ids order = {0, 1, 2, 3, 4, 5};
  MapToSubset(std::vector<IdRange>{{10, 2}, {3, 3}, {4'294'967'290, 1}}, order);
  EXPECT_EQ(order, (Ids{10, 11, 3, 4, 5, 4'294'967'290}));
}

TEST(Subset, IsReadThroughByEverySampler) {
  for (const Kind kind : {Kind::kSequential, Kind::kTorchDistributed, Kind::kTorchRandom,
                          Kind::kMegatronCyclic, Kind::kSpdlRandom}) {
    const bool cut = kind == Kind::kMegatronCyclic || kind == Kind::kSpdlRandom;
    const Recipe whole{.kind = kind, .size = 30, .drop_last = cut};
    Recipe part = whole;
    part.subset = {{100, 10}, {0, 20}};
    Ids expected = OrderSource::Make(whole)->PassOrder(1).value();
    for (SampleId& id : expected)
      id = id < 10 ? id + 100 : id - 10;
    EXPECT_EQ(OrderSource::Make(part)->PassOrder(1).value(), expected) << KindName(kind);
  }
}

}  // namespace
}  // namespace optcache::sampler
