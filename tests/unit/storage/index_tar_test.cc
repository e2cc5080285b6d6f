#include "storage/index_tar.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_object_store.h"
#include "support/tar_bytes.h"

namespace optcache::storage {
namespace {

using dataset::Layout;
using dataset::Manifest;
using dataset::Order;
using dataset::TarEnd;
using dataset::TarEntry;
using testing::HasSubstr;

class IndexTarTest : public testing::Test {
 protected:
  IndexTarTest() { store_.set_completes_at_once(true); }
  void Put(const std::string& path, const std::string& archive) {
    store_.Put(path, archive + TarEnd(), {.modified_ns = 7, .etag = {}});
  }
  Result<IndexReport> Index(dataset::Format format, IndexOptions options = {.deadline = Never()}) {
    options.format = format;
    options.deadline = Never();
    return BuildManifest(store_, options);
  }
  static Deadline Never() { return Deadline(MonotonicTime::max()); }

  FakeObjectStore store_;
};

TEST_F(IndexTarTest, NumbersGroupsByArchiveAndPlace) {
  Put("b.tar", TarEntry("0.jpg", "b0") + TarEntry("0.cls", "1"));
  Put("a.tar", TarEntry("1.jpg", "a1") + TarEntry("README", "text") + TarEntry("0.jpg", "a0"));
  store_.Put("notes.txt", "none");
  const IndexReport report = Index(dataset::Format::kTar).value();
  const Manifest& m = report.manifest;
  EXPECT_EQ(m.layout(), Layout::kGroups);
  EXPECT_EQ(m.order(), Order::kPath);
  ASSERT_EQ(m.samples(), 3);
  EXPECT_EQ(m.Path(0), "1");
  EXPECT_EQ(m.Path(1), "0");
  EXPECT_EQ(m.Path(2), "0");
  EXPECT_EQ(m.ObjectAt(m.ObjectOf(2)).path, "b.tar");
  EXPECT_EQ(m.ValidatorOf(2).modified_ns, 7);
  EXPECT_EQ(m.MembersOf(2).at(1).name, "cls");
  EXPECT_EQ(report.objects, 3);
  EXPECT_EQ(report.left_out, 2) << "notes.txt and README";
}

TEST_F(IndexTarTest, NumbersMembersAsIfUnpacked) {
  Put("x.tar", TarEntry("./dog/1.jpg", "d1") + TarEntry("./cat/2.jpg", "c2"));
  Put("y.tar", TarEntry("cat/1.jpg", "c1") + TarEntry("cat/notes.txt", ""));
  const IndexReport report = Index(dataset::Format::kTarFiles).value();
  const Manifest& m = report.manifest;
  EXPECT_EQ(m.layout(), Layout::kMembers);
  EXPECT_EQ(m.order(), Order::kImageFolder);
  ASSERT_EQ(m.samples(), 3);
  EXPECT_EQ(m.Path(0), "cat/1.jpg");
  EXPECT_EQ(m.Path(1), "cat/2.jpg");
  EXPECT_EQ(m.Path(2), "dog/1.jpg");
  EXPECT_EQ(m.ClassName(m.ClassOf(2)), "dog");
  EXPECT_EQ(m.Size(0), 2);
  EXPECT_EQ(report.left_out, 1);
}

TEST_F(IndexTarTest, AnOddKeyThatIsNoArchiveIsLeftOut) {
  Put("a.tar", TarEntry("0.jpg", "x"));
  store_.Put("/tmp", "x", {.modified_ns = 7, .etag = {}});
  const auto report = Index(dataset::Format::kTar);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->objects, 2U);
  EXPECT_EQ(report->left_out, 1U);
  Put("b/../c.tar", TarEntry("0.jpg", "x"));
  EXPECT_THAT(Index(dataset::Format::kTar).error().message(), HasSubstr("\"b/../c.tar\""));
}

TEST_F(IndexTarTest, SaysWhichArchivesMayHaveBeenCut) {
  Put("a.tar", TarEntry("0.jpg", "x"));
  EXPECT_TRUE(Index(dataset::Format::kTar)->unended.empty());
  store_.Put("b.tar", TarEntry("1.jpg", "x"), {.modified_ns = 7, .etag = {}});
  for (const dataset::Format format : {dataset::Format::kTar, dataset::Format::kTarFiles}) {
    const IndexReport report = Index(format).value();
    EXPECT_EQ(report.manifest.samples(), 2U);
    EXPECT_EQ(report.unended, std::vector<std::string>{"b.tar (1 file)"});
  }
}

TEST_F(IndexTarTest, TheSameArchivesGiveTheSameDigest) {
  for (int i = 0; i < 9; ++i)
    Put(std::to_string(i) + ".tar", TarEntry("a.jpg", "x") + TarEntry("b.jpg", "y"));
  EXPECT_EQ(Index(dataset::Format::kTar)->manifest.digest(),
            Index(dataset::Format::kTar)->manifest.digest());
}

TEST_F(IndexTarTest, DigestsAreOfWhatIsHandedOut) {
  Put("a.tar", TarEntry("0.jpg", "data"));
  const Manifest m =
      Index(dataset::Format::kTar, {.digests = true, .deadline = Never()}).value().manifest;
  const std::string sample =
      dataset::MembersHead("0", m.MembersOf(0)) + "data" + std::string(4, '\0');
  EXPECT_EQ(m.SampleDigest(0), dataset::Sha256Of(AsBytes(sample)));
}

// Indexing must not need as much memory as the largest sample has bytes.
TEST_F(IndexTarTest, DigestsOfLargeSamplesAreReadInPieces) {
  const std::string large(9'000'001, 'x');
  Put("a.tar", TarEntry("0.jpg", large) + TarEntry("README", "text") + TarEntry("0.cls", "1"));
  for (const dataset::Format format : {dataset::Format::kTar, dataset::Format::kTarFiles}) {
    const Manifest m = Index(format, {.digests = true, .deadline = Never()}).value().manifest;
    std::string sample = large;
    if (format == dataset::Format::kTar) {
      sample = dataset::MembersHead("0", m.MembersOf(0)) + large +
               std::string(dataset::MemberPadding(large.size()), '\0') + "1" + std::string(7, '\0');
    }
    const SampleId id = format == dataset::Format::kTar ? 0 : 1;
    ASSERT_EQ(m.Size(id), sample.size());
    EXPECT_EQ(m.SampleDigest(id), dataset::Sha256Of(AsBytes(sample)));
  }
  EXPECT_LE(store_.largest_read(), 4_MiB);
}

TEST_F(IndexTarTest, ListKeepsTheListingsOrderAndIncludeChooses) {
  Put("a.tar", TarEntry("a.jpg", "x"));
  Put("b.data", TarEntry("b.jpg", "x"));
  const auto chosen = Index(dataset::Format::kTar,
                            {.order = Order::kList, .include = {"*.data"}, .deadline = Never()});
  ASSERT_EQ(chosen->manifest.samples(), 1);
  EXPECT_EQ(chosen->manifest.order(), Order::kList);
  EXPECT_EQ(chosen->manifest.Path(0), "b");
}

TEST_F(IndexTarTest, ErrorsSayWhatToDo) {
  EXPECT_THAT(Index(dataset::Format::kTar).error().message(), HasSubstr("there is no object"));
  store_.Put("a.txt", "x");
  EXPECT_THAT(Index(dataset::Format::kTar).error().message(), HasSubstr("none of the 1 objects"));
  store_.Put("b.tar.gz", "x");
  EXPECT_THAT(Index(dataset::Format::kTar).error().message(),
              HasSubstr("none of the 2 objects is a .tar archive; b.tar.gz is compressed"));
  Put("a.tar", TarEntry("README", "x"));
  EXPECT_THAT(Index(dataset::Format::kTar).error().message(), HasSubstr("KEY.ENDING"));
  Put("a.tar", TarEntry("a.jpg", "x") + TarEntry("a.JPG", "x"));
  EXPECT_THAT(Index(dataset::Format::kTar).error().message(),
              HasSubstr("fake://: a.tar: member a.JPG is the second"));
  Put("a.tar", TarEntry("a.jpg", "x"));
  EXPECT_THAT(Index(dataset::Format::kTar, {.order = Order::kImageFolder, .deadline = Never()})
                  .error()
                  .message(),
              HasSubstr("image-folder"));
  Put("b.tar", TarEntry("a.jpg", "x"));
  EXPECT_THAT(Index(dataset::Format::kTarFiles).error().message(),
              HasSubstr("a.jpg is listed twice"));
  Put("b.tar", TarEntry("../a.jpg", "x"));
  EXPECT_THAT(Index(dataset::Format::kTarFiles).error().message(), HasSubstr("\"..\""));
}

}  // namespace
}  // namespace optcache::storage
