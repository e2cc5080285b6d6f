#include "storage/index_ranges.h"

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "dataset/ranges.h"
#include "support/fake_object_store.h"
#include "support/megatron_bytes.h"
#include "support/npy_bytes.h"
#include "support/seeds.h"

namespace optcache::storage {
namespace {

using dataset::Layout;
using dataset::Manifest;
using dataset::Member;
using dataset::Order;
using testing::ElementsAre;
using testing::HasSubstr;

class IndexRangesTest : public testing::Test {
 protected:
  IndexRangesTest() { store_.set_completes_at_once(true); }
  void Put(const std::string& path, const std::string& content) {
    store_.Put(path, content, {.modified_ns = 7, .etag = {}});
  }
  Result<IndexReport> Index(IndexOptions options = {.deadline = Never()}) {
    if (options.format == dataset::Format::kFiles) options.format = dataset::Format::kRanges;
    options.deadline = Never();
    return BuildManifest(store_, options);
  }
  std::string WhyNot(const std::string& list) {
    Put("ranges.csv", list);
    const auto report = Index();
    return report ? "" : report.error().message();
  }
  static Deadline Never() { return Deadline(MonotonicTime::max()); }

  FakeObjectStore store_;
};

TEST_F(IndexRangesTest, SamplesAreTheLinesOfTheList) {
  Put("a.bin", std::string(100, 'a'));
  Put("x/b.bin", std::string(50, 'b'));
  Put("notes.txt", "none");
  Put("ranges.csv", "x/b.bin,10,40\na.bin,0,60\na.bin,60,40\nx/b.bin,0,0\n");
  const IndexReport report = Index().value();
  const Manifest& m = report.manifest;
  EXPECT_EQ(m.layout(), Layout::kMembers);
  EXPECT_EQ(m.order(), Order::kPath);
  EXPECT_EQ(m.classes(), 0U);
  ASSERT_EQ(m.samples(), 4U);
  EXPECT_EQ(m.objects(), 2U);
  EXPECT_EQ(m.ObjectAt(m.ObjectOf(0)).path, "x/b.bin");
  EXPECT_EQ(m.ObjectAt(m.ObjectOf(0)).size, 50U);
  EXPECT_THAT(m.MembersOf(0), ElementsAre(Member{.name = {}, .offset = 10, .size = 40}));
  EXPECT_THAT(m.MembersOf(2), ElementsAre(Member{.name = {}, .offset = 60, .size = 40}));
  EXPECT_EQ(m.Size(3), 0U);
  EXPECT_EQ(m.ValidatorOf(2).modified_ns, 7);
  EXPECT_EQ(m.Path(0), "x/b.bin#0");
  EXPECT_EQ(m.Path(2), "a.bin#1");
  EXPECT_EQ(m.Path(3), "x/b.bin#1");
  EXPECT_EQ(m.NameInSource(3), "x/b.bin#1") << "the object is not named twice";
  EXPECT_EQ(report.objects, 4U);
  EXPECT_EQ(report.left_out, 1U) << "notes.txt";
  EXPECT_FALSE(report.order_chosen);
}

TEST_F(IndexRangesTest, NamesAreThoseOfTheList) {
  Put("a.bin", "0123456789");
  Put("ranges.csv", "a.bin,0,5,day/1\na.bin,5,5,day/2\n");
  const Manifest m = Index().value().manifest;
  EXPECT_EQ(m.Path(1), "day/2");
  EXPECT_EQ(m.NameInSource(1), "day/2 in a.bin");
  EXPECT_THAT(WhyNot("a.bin,0,5,n\na.bin,5,5,n\n"), HasSubstr("two samples have the name n"));
}

TEST_F(IndexRangesTest, AllListsHaveNamesOrNone) {
  Put("a.bin", "0123456789");
  Put("a.csv", "a.bin,0,5,a.bin#0\n");
  Put("b.csv", "a.bin,5,5\n");
  const auto why_not = [&] {
    return Index({.include = {"*.csv"}, .deadline = Never()}).error().message();
  };
  EXPECT_THAT(why_not(), HasSubstr("fake://: b.csv: its samples have no names, those of a.csv have "
                                   "names: name all samples, or none"));
  Put("a.csv", "a.bin,0,5\n");
  Put("b.csv", "a.bin,5,5,n\n");
  EXPECT_THAT(why_not(), HasSubstr("b.csv: its samples have names, those of a.csv have none"));
}

// Windows over a series overlap, and a record may be a sample twice.
TEST_F(IndexRangesTest, RangesMayOverlap) {
  Put("a.bin", "0123456789");
  Put("ranges.csv", "a.bin,0,8\na.bin,2,8\na.bin,2,8\n");
  EXPECT_EQ(Index().value().manifest.total_bytes(), 24U);
}

TEST_F(IndexRangesTest, SeveralListsFollowOneAnother) {
  Put("a.bin", "0123456789");
  Put("b.bin", "0123456789");
  Put("z.csv", "a.bin,0,1\n");
  Put("y.csv", "b.bin,0,2\na.bin,1,2\n");
  const Manifest m = Index({.include = {"*.csv"}, .deadline = Never()}).value().manifest;
  ASSERT_EQ(m.samples(), 3U);
  EXPECT_EQ(m.objects(), 2U) << "a.bin is one shard";
  EXPECT_EQ(m.Path(0), "b.bin#0");
  EXPECT_EQ(m.Path(1), "a.bin#0");
  EXPECT_EQ(m.Path(2), "a.bin#1");
}

TEST_F(IndexRangesTest, DigestsAreOfTheRanges) {
  Put("a.bin", "0123456789");
  Put("ranges.csv", "a.bin,3,4\n");
  const Manifest m = Index({.digests = true, .deadline = Never()}).value().manifest;
  EXPECT_EQ(m.SampleDigest(0), dataset::Sha256Of(AsBytes("3456")));
  EXPECT_NE(Index().value().manifest.digest(), m.digest());
}

// The slow and obvious way: a line is put into the manifest where it stands.
TEST_F(IndexRangesTest, EqualsTheListLineByLine) {
  const std::uint64_t seed = TestSeed(7);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  std::string list;
  std::vector<std::tuple<std::string, ByteCount, ByteCount>> expected;
  for (int object = 0; object < 7; ++object)
    Put(fmt::format("o{}.bin", object), std::string(1000, 'x'));
  for (int line = 0; line < 500; ++line) {
    const std::string object = fmt::format("o{}.bin", random.Below(7));
    const ByteCount offset = random.Below(1001);
    const ByteCount length = random.Below(1001 - offset);
    list += fmt::format("{},{},{}\n", object, offset, length);
    expected.emplace_back(object, offset, length);
  }
  Put("ranges.csv", list);
  const Manifest m = Index().value().manifest;
  ASSERT_EQ(m.samples(), expected.size());
  for (SampleId i = 0; i < m.samples(); ++i) {
    const auto& [object, offset, length] = expected[i];
    EXPECT_EQ(m.ObjectAt(m.ObjectOf(i)).path, object);
    EXPECT_THAT(m.MembersOf(i), ElementsAre(Member{.name = {}, .offset = offset, .size = length}));
  }
}

TEST_F(IndexRangesTest, ErrorsSayWhatToDo) {
  EXPECT_THAT(Index().error().message(), HasSubstr("there is no object"));
  Put("a.bin", std::string(800, 'a'));
  EXPECT_THAT(Index().error().message(),
              HasSubstr("fake://: none of the 1 objects is ranges.csv, which says what"));
  EXPECT_THAT(WhyNot("a.bin,0,1\na.bin,700,200\n"),
              HasSubstr("fake://: ranges.csv: line 2: 200 bytes from byte 700 on end beyond a.bin, "
                        "which has 800 bytes"));
  EXPECT_THAT(WhyNot("a.bin,0,1\nb.bin,0,1\n"),
              HasSubstr("fake://: ranges.csv: line 2: b.bin is not there"));
  EXPECT_THAT(WhyNot("a.bin,0\n"), HasSubstr("fake://: ranges.csv: line 1: not OBJECT"));
  EXPECT_THAT(WhyNot(""), HasSubstr("fake://: ranges.csv: there is no range in it"));
  Put("ranges.csv", "a.bin,0,1\n");
  EXPECT_THAT(Index({.order = Order::kImageFolder, .deadline = Never()}).error().message(),
              HasSubstr("order image-folder numbers files"));
}

TEST_F(IndexRangesTest, RowsOfArraysAreSamples) {
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (10, 3), }";
  const std::string head = NpyHeader(dict);
  Put("y.npy", head + std::string(120, 'y'));
  Put("x/a.npy", head + std::string(120, 'a'));
  Put("none.npy", NpyHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }"));
  Put("notes.txt", "none");
  const IndexReport report = Index({.format = dataset::Format::kNpy, .deadline = Never()}).value();
  const Manifest& m = report.manifest;
  ASSERT_EQ(m.samples(), 20U);
  EXPECT_EQ(m.Path(11), "y.npy#1");
  EXPECT_EQ(m.Path(9), "x/a.npy#9");
  EXPECT_THAT(m.MembersOf(9),
              ElementsAre(Member{.name = {}, .offset = head.size() + 9 * 12, .size = 12}));
  EXPECT_EQ(report.left_out, 1U) << "notes.txt";
  EXPECT_LE(store_.largest_read(), 4_KiB);
}

TEST_F(IndexRangesTest, ALongHeaderIsReadWhole) {
  std::string fields;
  for (int i = 0; i < 500; ++i)
    fields += fmt::format("('field_{}', '<f4'), ", i);
  Put("a.npy", NpyHeader("{'descr': [" + fields + "], 'fortran_order': False, 'shape': (2,), }") +
                   std::string(4000, 'a'));
  const Manifest m = Index({.format = dataset::Format::kNpy, .deadline = Never()}).value().manifest;
  ASSERT_EQ(m.samples(), 2U);
  EXPECT_EQ(m.Size(1), 2000U);
}

TEST_F(IndexRangesTest, ArraysAreOfOneKind) {
  Put("a.npy", NpyHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }") +
                   std::string(12, 'a'));
  Put("b.npy", NpyHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }") +
                   std::string(16, 'b'));
  const auto report = Index({.format = dataset::Format::kNpy, .deadline = Never()});
  EXPECT_THAT(report.error().message(),
              HasSubstr("fake://: b.npy: its samples are <f4 (4), those of a.npy are <f4 (3): make "
                        "a Dataset of each kind"));
  std::string fields;
  for (int i = 0; i < 500; ++i)
    fields += fmt::format("('field_{}', '<f4'), ", i);
  Put("b.npy", NpyHeader("{'descr': [" + fields + "], 'fortran_order': False, 'shape': (1,), }") +
                   std::string(2000, 'b'));
  EXPECT_LT(Index({.format = dataset::Format::kNpy, .deadline = Never()}).error().message().size(),
            500U);
  Put("b.npy", "text");
  EXPECT_THAT(Index({.format = dataset::Format::kNpy, .deadline = Never()}).error().message(),
              HasSubstr("fake://: b.npy: this is no .npy file"));
}

TEST_F(IndexRangesTest, SequencesOfMegatronAreSamples) {
  Put("x.idx", MegatronIdx({{.tokens = 5, .offset = 0}, {.tokens = 3, .offset = 10}}));
  Put("x.bin", "0123456789abcdef and more");
  Put("a/y.idx", MegatronIdx({{.tokens = 2, .offset = 4}}));
  Put("a/y.bin", "01234567");
  Put("notes.txt", "none");
  const IndexReport report =
      Index({.format = dataset::Format::kMegatron, .deadline = Never()}).value();
  const Manifest& m = report.manifest;
  ASSERT_EQ(m.samples(), 3U);
  EXPECT_EQ(m.Path(0), "a/y.bin#0");
  EXPECT_THAT(m.MembersOf(0), ElementsAre(Member{.name = {}, .offset = 4, .size = 4}));
  EXPECT_EQ(m.Path(2), "x.bin#1");
  EXPECT_THAT(m.MembersOf(2), ElementsAre(Member{.name = {}, .offset = 10, .size = 6}));
  EXPECT_EQ(report.left_out, 1U) << "notes.txt";
}

TEST_F(IndexRangesTest, ErrorsOfMegatronNameTheSequence) {
  const auto why_not = [&] {
    return Index({.format = dataset::Format::kMegatron, .deadline = Never()}).error().message();
  };
  Put("x.idx", MegatronIdx({{.tokens = 5, .offset = 0}, {.tokens = 3, .offset = 10}}));
  EXPECT_THAT(why_not(), HasSubstr("fake://: x.idx: sequence 0: x.bin is not there"));
  Put("x.bin", "0123456789abcde");
  EXPECT_THAT(why_not(), HasSubstr("fake://: x.idx: sequence 1: 6 bytes from byte 10 on end beyond "
                                   "x.bin, which has 15 bytes"));
  Put("x.bin", "0123456789abcdef");
  Put("y.idx", MegatronIdx({{.tokens = 1, .offset = 0}}, 4));
  Put("y.bin", "0123");
  EXPECT_THAT(why_not(), HasSubstr("y.idx: its samples are int32 tokens, those of x.idx are uint16 "
                                   "tokens"));
  Put("y.idx", MegatronIdx({}));
  EXPECT_EQ(Index({.format = dataset::Format::kMegatron, .deadline = Never()})->manifest.samples(),
            2U);
}

TEST_F(IndexRangesTest, BoundsTheSamples) {
  const auto put = [&](const std::string& path, size_t rows) {
    std::string array = NpyHeader(
        fmt::format("{{'descr': '|u1', 'fortran_order': False, 'shape': ({},), }}", rows));
    array.resize(array.size() + rows);
    store_.Put(path, std::move(array));
  };
  const auto why_not = [&] {
    return Index({.format = dataset::Format::kNpy, .deadline = Never()}).error().message();
  };
  put("a.npy", dataset::kRangeSamplesMax + 1);
  EXPECT_THAT(why_not(),
              HasSubstr("fake://: a.npy: 100000001 samples are more than the 100000000 that a "
                        "Dataset can have"));
  put("a.npy", dataset::kRangeSamplesMax / 2);
  put("b.npy", dataset::kRangeSamplesMax / 2 + 1);
  EXPECT_THAT(why_not(), HasSubstr("fake://: b.npy: 100000001 samples are more"));
}

TEST_F(IndexRangesTest, CountsSamplesThatMayChangeUnnoticed) {
  store_.Put("a.bin", "0123456789");
  Put("ranges.csv", "a.bin,0,1\na.bin,1,1\n");
  EXPECT_EQ(Index().value().unversioned_count, 2U);
}

}  // namespace
}  // namespace optcache::storage
