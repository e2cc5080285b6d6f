#include "coordinator/trace_registry.h"

#include <gtest/gtest.h>

#include "coordination/plan_base.h"
#include "sampler/id_list.h"

namespace optcache::coordination {
namespace {

constexpr std::uint64_t kSamples = 1000;
constexpr StreamId kStream = 7;

std::string List(std::vector<SampleId> ids) {
  return sampler::EncodeList(ids, sampler::BitsFor(kSamples));
}

class TraceRegistryTest : public testing::Test {
 protected:
  std::string Take(const std::string& list) {
    std::string digest = DigestHex(list);
    EXPECT_TRUE(book_.Take(digest, list, kSamples).ok());
    return digest;
  }
  void Update(const NamedTraces& named, const std::vector<StreamState>& planned = {}) {
    book_.Update({{kStream, named}}, planned, kSamples);
  }
  TraceRegistry book_;
};

TEST_F(TraceRegistryTest, ThePassIsKnownOnceTheListsOfAllRanksAreHere) {
  const std::string one = List({1, 2, 3});
  const std::string two = List({4, 5, 6});
  const std::string first = Take(one);
  const std::string second = DigestHex(two);
  Update({{0, {first, second}}});
  EXPECT_TRUE(book_.PassesOf(kStream).empty());
  EXPECT_TRUE(book_.Has(first)) << "waited with";
  EXPECT_FALSE(book_.Has(second));
  Take(two);
  Update({{0, {first, second}}});
  const auto passes = book_.PassesOf(kStream);
  ASSERT_EQ(passes.size(), 1U);
  EXPECT_EQ(passes[0].length, 6U);
  const auto bytes = book_.Bytes(passes[0].digest);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(DigestHex(*bytes), passes[0].digest);
  const auto lists = sampler::ParseLists(*bytes, kSamples).value();
  EXPECT_EQ(sampler::PassOrder(lists, kSamples).value(), (std::vector<SampleId>{1, 4, 2, 5, 3, 6}));
  EXPECT_TRUE(book_.Has(first)) << "as a part of it";
  EXPECT_EQ(book_.bytes_held(), bytes->size()) << "once";
}

TEST_F(TraceRegistryTest, AListThatARankReplacesIsAnotherPass) {
  const std::string first = Take(List({1, 2}));
  Update({{0, {first}}});
  const std::string before = book_.PassesOf(kStream).at(0).digest;
  const std::string second = Take(List({3, 4}));
  Update({{0, {second}}});
  EXPECT_NE(book_.PassesOf(kStream).at(0).digest, before);
  EXPECT_FALSE(book_.Has(first));
  EXPECT_EQ(book_.Bytes(before), nullptr);
}

TEST_F(TraceRegistryTest, WhatTheOtherRanksReadIsNotAskedForAgain) {
  const std::string first = Take(List({1, 2, 3}));
  const std::string second = Take(List({4, 5, 6}));
  Update({{0, {first, second}}});
  const std::string third = Take(List({7, 8}));
  Update({{0, {third, second}}});
  const auto passes = book_.PassesOf(kStream);
  ASSERT_EQ(passes.size(), 1U);
  const auto lists = sampler::ParseLists(*book_.Bytes(passes[0].digest), kSamples).value();
  EXPECT_EQ(sampler::PassOrder(lists, kSamples).value(), (std::vector<SampleId>{7, 4, 8, 5}));
}

TEST_F(TraceRegistryTest, ForgetsWhatNobodyNamesButNotWhatIsPlanned) {
  const std::string first = Take(List({1, 2}));
  const std::string second = Take(List({3, 4}));
  Update({{0, {first}}, {1, {second}}});
  const auto passes = book_.PassesOf(kStream);
  ASSERT_EQ(passes.size(), 2U);
  Update({{1, {second}}}, {{.id = kStream, .traces = passes}});
  EXPECT_EQ(book_.PassesOf(kStream).size(), 1U);
  EXPECT_NE(book_.Bytes(passes[0].digest), nullptr) << "a node may come late";
  Update({{1, {second}}});
  EXPECT_EQ(book_.Bytes(passes[0].digest), nullptr);
  book_.Update({}, {}, kSamples);
  EXPECT_TRUE(book_.empty());
}

TEST_F(TraceRegistryTest, PassesAreKnownWithoutAGap) {
  const std::string one = Take(List({1}));
  const std::string two = Take(List({2}));
  Update({{3, {one}}, {5, {two}}});
  ASSERT_EQ(book_.PassesOf(kStream).size(), 1U);
  EXPECT_EQ(book_.PassesOf(kStream)[0].pass, 3U);
}

TEST_F(TraceRegistryTest, RefusesWhatIsNotTheListOfThatDigest) {
  const std::string good = List({1, 2, 999});
  const auto refused = [&](const std::string& digest, const std::string& bytes) {
    const Status status = book_.Take(digest, bytes, kSamples);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_FALSE(book_.Has(digest));
    EXPECT_TRUE(book_.Refused(digest));
    return status.message();
  };
  refused(DigestHex("other"), good);
  refused(DigestHex("junk"), "junk");
  const std::string beyond = List({1, 1000});
  EXPECT_EQ(refused(DigestHex(beyond), beyond),
            "list of ids: rank 0 names sample 1000, there are 1000");
  const std::string narrow = sampler::EncodeList(std::vector<SampleId>{1}, 4);
  refused(DigestHex(narrow), narrow);
  const std::string_view two[] = {good, good};
  const std::string joined = sampler::JoinLists(two, kSamples).value();
  refused(DigestHex(joined), joined);
}

}  // namespace
}  // namespace optcache::coordination
