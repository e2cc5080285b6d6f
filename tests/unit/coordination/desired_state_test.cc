#include "coordination/desired_state.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

DesiredState TwoAndOneThatRetires() {
  return {.datasets = {{.name = "speech/words", .key = 1}, {.name = "vision/birds", .key = 2}},
          .retiring = {{.name = "vision/birds", .key = 9}}};
}

TEST(AllDatasets, ThoseThatRetireComeLast) {
  const DesiredState state = TwoAndOneThatRetires();
  EXPECT_EQ(AllDatasets(state),
            (std::vector{&state.datasets[0], &state.datasets[1], &state.retiring[0]}));
}

TEST(FindDataset, WhatRetiresIsKnownByItsKeyAlone) {
  const DesiredState state = TwoAndOneThatRetires();
  EXPECT_EQ(FindDataset(state, "vision/birds"), &state.datasets[1]);
  EXPECT_EQ(FindDataset(state, "vision/bird"), nullptr);
  EXPECT_EQ(FindDataset(state, DatasetKey{1}), &state.datasets[0]);
  EXPECT_EQ(FindDataset(state, DatasetKey{9}), &state.retiring[0]);
  EXPECT_EQ(FindDataset(state, DatasetKey{3}), nullptr);
}

TEST(IsRetiring, ThePresentManifestIsNot) {
  const DesiredState state = TwoAndOneThatRetires();
  EXPECT_TRUE(IsRetiring(state, 9));
  EXPECT_FALSE(IsRetiring(state, 2));
}

TEST(NamespaceOf, EndsAtTheSlash) {
  EXPECT_EQ(NamespaceOf("vision/birds"), "vision");
  EXPECT_EQ(NamespaceOf("birds"), "birds");
  EXPECT_EQ(NamespaceOf("/birds"), "");
}

}  // namespace
}  // namespace optcache::coordination
