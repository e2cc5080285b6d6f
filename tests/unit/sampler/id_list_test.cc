#include "sampler/id_list.h"

#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::sampler {
namespace {

std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// docs/formats/list.md, byte by byte: a change here is a change of the format.
TEST(IdList, IsAsItsPageSays) {
  const std::vector<SampleId> ids = {5, 0, 9, 9, 2};
  EXPECT_EQ(EncodeList(ids, BitsFor(10)), FromHex("4f434c4953543031"  // OCLIST01
                                                  "04000000"          // four bits
                                                  "01000000"          // one rank
                                                  "0500000000000000"  // five ids
                                                  "059902"));
  const std::vector<std::string> ranks = {EncodeList(std::vector<SampleId>{1, 2, 3}, 4),
                                          EncodeList(std::vector<SampleId>{4, 5}, 4)};
  const std::vector<std::string_view> views(ranks.begin(), ranks.end());
  EXPECT_EQ(JoinLists(views, 10).value(), FromHex("4f434c4953543031"
                                                  "04000000"
                                                  "02000000"
                                                  "0300000000000000"
                                                  "0200000000000000"
                                                  "2103"
                                                  "54"));
}

TEST(IdList, AnIdTakesTheBitsOfTheLargest) {
  EXPECT_EQ(BitsFor(0), 1U);
  EXPECT_EQ(BitsFor(1), 1U);
  EXPECT_EQ(BitsFor(2), 1U);
  EXPECT_EQ(BitsFor(3), 2U);
  EXPECT_EQ(BitsFor(1024), 10U);
  EXPECT_EQ(BitsFor(1025), 11U);
  EXPECT_EQ(BitsFor(1281167), 21U);
  EXPECT_EQ(BitsFor(0xffffffffULL), 32U);
}

TEST(IdList, GivesBackWhatWasWritten) {
  Random random(20261122);
  for (int turn = 0; turn < 300; ++turn) {
    const auto samples = std::uint64_t{1} + random.Below(std::uint64_t{1} << random.Below(33));
    const std::size_t ranks = 1 + random.Below(5);
    const std::size_t length = 1 + random.Below(50);
    std::vector<std::vector<SampleId>> ids(ranks, std::vector<SampleId>(length));
    std::vector<std::string> lists;
    for (auto& rank : ids) {
      for (SampleId& id : rank)
        id = static_cast<SampleId>(random.Below(samples));
      lists.push_back(EncodeList(rank, BitsFor(samples)));
    }
    const std::vector<std::string_view> views(lists.begin(), lists.end());
    const std::string joined = JoinLists(views, samples).value();
    const std::vector<SampleId> order =
        PassOrder(ParseLists(joined, samples).value(), samples).value();
    ASSERT_EQ(order.size(), ranks * length);
    for (std::size_t position = 0; position < order.size(); ++position)
      ASSERT_EQ(order[position], ids[position % ranks][position / ranks]);
  }
}

TEST(IdList, APassIsAsLongAsItsShortestList) {
  const std::vector<std::string> ranks = {EncodeList(std::vector<SampleId>{1, 2, 3}, 4),
                                          EncodeList(std::vector<SampleId>{4, 5}, 4)};
  const std::vector<std::string_view> views(ranks.begin(), ranks.end());
  const std::string joined = JoinLists(views, 10).value();
  const IdLists lists = ParseLists(joined, 10).value();
  EXPECT_EQ(PassLength(lists), 4U);
  EXPECT_EQ(PassOrder(lists, 10).value(), (std::vector<SampleId>{1, 4, 2, 5}));
}

TEST(IdList, RefusesWhatIsNoList) {
  const std::string good = EncodeList(std::vector<SampleId>{5, 0, 9}, 4);
  ASSERT_TRUE(ParseLists(good, 10).has_value());
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(ParseLists(std::string_view(good).substr(0, length), 10)) << length;
  EXPECT_FALSE(ParseLists(good + '\0', 10)) << "goes on";
  EXPECT_FALSE(ParseLists(good, 17)) << "five bits";
  const auto with = [&good](std::size_t at, char value) {
    std::string bytes = good;
    bytes[at] = value;
    return ParseLists(bytes, 10);
  };
  EXPECT_FALSE(with(0, 'X'));
  EXPECT_FALSE(with(12, 0)) << "no ranks";
  EXPECT_FALSE(with(12, 9)) << "more ranks than bytes";
  EXPECT_FALSE(with(16, 0)) << "an empty list";
  EXPECT_FALSE(with(23, 0x7f)) << "2^62 ids";
  EXPECT_FALSE(with(25, 0x19)) << "bits after the last id";
}

TEST(IdList, RefusesIdsThatAreNone) {
  const std::string bytes = EncodeList(std::vector<SampleId>{5, 10, 9}, 4);
  const IdLists lists = ParseLists(bytes, 10).value();
  EXPECT_EQ(CheckIds(lists, 10).code(), Code::kInvalidArgument);
  const auto order = PassOrder(lists, 10);
  ASSERT_FALSE(order);
  EXPECT_EQ(order.error().message(), "list of ids: rank 0 names sample 10, there are 10");
  EXPECT_TRUE(CheckIds(lists, 11).ok());
}

TEST(IdList, EndsSoonWhereItIsStopped) {
  constexpr std::uint32_t kIds = 4 * StopCheck::kSteps - 1;
  std::vector<SampleId> ids(kIds);
  ids.back() = kIds;  // there is none
  const std::string bytes = EncodeList(ids, BitsFor(kIds));
  const IdLists lists = ParseLists(bytes, kIds).value();
  std::size_t looks = 0;
  const StopCheck stop([&looks] { return ++looks > 2; });
  EXPECT_TRUE(CheckIds(lists, kIds, stop).ok()) << "looked at all";
  EXPECT_EQ(PassOrder(lists, kIds, stop).error().code(), Code::kCancelled);
}

TEST(IdList, RefusesToJoinWhatIsTooLargeTogether) {
  const std::string half = EncodeList(std::vector<SampleId>(9'000'000), 32);
  const std::string_view two[] = {half, half};
  const auto joined = JoinLists(two, 0xffffffffULL);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code(), Code::kInvalidArgument);
}

TEST(IdList, RefusesPassesThatPlansHaveNoMemoryFor) {
  const std::uint64_t most = MaxListIds(10);
  const std::string longest = EncodeList(std::vector<SampleId>(most), 4);
  EXPECT_TRUE(ParseLists(longest, 10).has_value());
  const std::string longer = EncodeList(std::vector<SampleId>(most + 1), 4);
  EXPECT_EQ(ParseLists(longer, 10).error().message(),
            "list of ids: more than 65616 ids, which is what is planned of 10 samples");
  const std::string_view two[] = {longest, longest};
  EXPECT_FALSE(JoinLists(two, 10).has_value());
}

}  // namespace
}  // namespace optcache::sampler
