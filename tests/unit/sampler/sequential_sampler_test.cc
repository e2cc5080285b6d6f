#include "sampler/sequential_sampler.h"

#include <gtest/gtest.h>

namespace optcache::sampler {
namespace {

TEST(SequentialSampler, ReadsFromFrontToBack) {
  EXPECT_EQ(SequentialOrder(4), (std::vector<SampleId>{0, 1, 2, 3}));
  EXPECT_TRUE(SequentialOrder(0).empty());
}

}  // namespace
}  // namespace optcache::sampler
