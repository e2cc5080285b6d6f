#include "storage/index.h"

#include <unistd.h>

#include <filesystem>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/open_store.h"
#include "support/fake_object_store.h"
#include "support/scripted_http_server.h"
#include "support/temp_dir.h"

namespace optcache::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<IndexReport> Index(const std::string& address,
                          IndexOptions options = {.deadline = Deadline(MonotonicTime::max())}) {
  options.deadline = Deadline::After(SystemClock(), std::chrono::minutes(1));
  const RetryOptions retry = {
      .patience = std::chrono::milliseconds(50),
      .first_patience = std::chrono::milliseconds(50),
      .backoff = {.first = std::chrono::milliseconds(1), .limit = std::chrono::milliseconds(1)}};
  const auto store = OpenStore(address, {.retry = retry}).value();
  return BuildManifest(*store, options);
}

TEST(Index, MakesAManifestOfAFolder) {
  const TempDir dir;
  dir.Write("b/1.jpg", "1");
  dir.Write("a/2.jpg", "22");
  dir.Write("a/notes.txt", "not a sample");
  const IndexReport report = Index(dir.path()).value();
  const dataset::Manifest& m = report.manifest;
  EXPECT_EQ(m.order(), dataset::Order::kImageFolder);
  EXPECT_EQ(m.samples(), 2U);
  EXPECT_EQ(m.Path(0), "a/2.jpg");
  EXPECT_EQ(m.Size(0), 2U);
  EXPECT_NE(m.ValidatorOf(0).modified_ns, 0);
  EXPECT_EQ(m.ClassName(m.ClassOf(1)), "b");
  EXPECT_EQ(report.objects, 3U);
  EXPECT_EQ(report.missing_count, 0U);
}

TEST(Index, AnOddKeyMayBeLeftOut) {
  FakeObjectStore store;
  for (const char* const key : {"a/1.jpg", "/tmp", "a/../2.jpg"})
    store.Put(key, "x", {.modified_ns = 7, .etag = {}});
  const auto build = [&](std::optional<dataset::Order> order, std::vector<std::string> include) {
    return BuildManifest(store, {.order = order,
                                 .include = std::move(include),
                                 .deadline = Deadline(MonotonicTime::max())});
  };
  const auto chosen = build(std::nullopt, {"a/*.jpg"});
  ASSERT_TRUE(chosen) << chosen.error().message();
  EXPECT_EQ(chosen->manifest.samples(), 1U);
  EXPECT_EQ(chosen->objects, 3U);
  EXPECT_EQ(chosen->left_out, 2U);
  for (const auto& [order, include, key] :
       {std::tuple(std::optional(dataset::Order::kPath), std::vector<std::string>(), "/tmp"),
        std::tuple(std::optional<dataset::Order>(), std::vector<std::string>(), "a/../2.jpg"),
        std::tuple(std::optional(dataset::Order::kImageFolder), std::vector<std::string>(),
                   "a/../2.jpg"),
        std::tuple(std::optional<dataset::Order>(), std::vector<std::string>{"**/*.jpg"},
                   "a/../2.jpg")}) {
    const auto refused = build(order, include);
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.error().message(),
                HasSubstr(std::string("no manifest can hold the key \"") + key + "\""));
    EXPECT_THAT(refused.error().message(), HasSubstr("include patterns that leave it out"));
  }
}

TEST(Index, AnOddKeyThatIsNoImageIsNoSampleWhereImagesAreChosen) {
  FakeObjectStore store;
  for (const char* const key : {"a/1.jpg", "/tmp"})
    store.Put(key, "x", {.modified_ns = 7, .etag = {}});
  const auto report = BuildManifest(store, {.deadline = Deadline(MonotonicTime::max())});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->manifest.order(), dataset::Order::kImageFolder);
  EXPECT_EQ(report->left_out, 1U);
}

TEST(Index, KnowsTheWordsOfVerify) {
  EXPECT_EQ(ParseVerify("Digest"), true);
  EXPECT_EQ(ParseVerify("checksum"), false);
  EXPECT_EQ(ParseVerify("MD5").error().message(), "--verify MD5: there are Checksum and Digest");
}

TEST(Index, TheSameTreeGivesTheSameDigest) {
  const TempDir dir;
  for (const std::string name : {"a/1.jpg", "a/2.jpg", "b/c/3.jpg", "b/4.png"})
    dir.Write(name, name);
  EXPECT_EQ(Index(dir.path())->manifest.digest(), Index(dir.path())->manifest.digest());
}

TEST(Index, ADanglingLinkKeepsItsNumberAndIsReported) {
  const TempDir dir;
  dir.Write("a/1.jpg", "1");
  std::filesystem::create_symlink("nowhere", dir.Join("a/0.jpg"));
  const IndexReport report = Index(dir.path()).value();
  EXPECT_EQ(report.manifest.Path(0), "a/0.jpg");
  EXPECT_EQ(report.manifest.Size(0), 0U);
  EXPECT_EQ(report.missing_count, 1U);
  EXPECT_THAT(report.missing, ElementsAre("a/0.jpg"));
}

// A user like any other, also where tests run as root.
class Anybody {
 public:
  Anybody() : was_root_(::geteuid() == 0) { is_root_ = was_root_ && ::seteuid(kNobody) != 0; }
  ~Anybody() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }
  Anybody(const Anybody&) = delete;
  Anybody& operator=(const Anybody&) = delete;
  bool is_root() const { return is_root_; }

 private:
  static constexpr uid_t kNobody = 65534;
  bool was_root_ = false;
  bool is_root_ = false;
};

TEST(Index, AFileThatMayNotBeReadKeepsItsNumberAndIsReported) {
  namespace fs = std::filesystem;
  const TempDir dir;
  for (const std::string name : {"a/0.jpg", "a/1.jpg", "b/2.jpg", "README"})
    dir.Write(name, name);
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(dir.Join("a/1.jpg"), fs::perms::none);
  fs::permissions(dir.Join("README"), fs::perms::none);
  const Anybody anybody;
  if (anybody.is_root()) GTEST_SKIP() << "root may read everything";
  const IndexReport report = Index(dir.path()).value();
  EXPECT_EQ(report.manifest.samples(), 3U);
  EXPECT_EQ(report.manifest.Size(1), 7U);
  EXPECT_EQ(report.unreadable_count, 1U);
  EXPECT_THAT(report.unreadable, ElementsAre("a/1.jpg"));
}

TEST(Index, AsksAServerForWhatItsListingDoesNotTell) {
  ScriptedHttpServer server;
  server.Put("index.txt", "a/1.jpg\na/2.jpg\t7\t\"known\"\nREADME\n");
  server.Put("a/1.jpg", "12345", "\"asked\"");
  const IndexReport report = Index(server.url()).value();
  EXPECT_EQ(report.manifest.Size(0), 5U);
  EXPECT_EQ(report.manifest.ValidatorOf(0).etag, "\"asked\"");
  EXPECT_EQ(report.manifest.Size(1), 7U);
  EXPECT_EQ(report.manifest.ValidatorOf(1).etag, "\"known\"");
  EXPECT_EQ(server.requests().size(), 2U) << "samples only, and only where needed";
}

TEST(Index, AsksForTheVersionOfWhatIsListedWithItsSizeAlone) {
  ScriptedHttpServer server;
  server.Put("index.txt", "a/1.jpg\t5\na/2.jpg\t5\na/3.jpg\t5\n");
  server.Put("a/1.jpg", "12345", "\"asked\"");
  server.Put("a/2.jpg", "1234567");
  const IndexReport report = Index(server.url()).value();
  EXPECT_EQ(report.manifest.ValidatorOf(0).etag, "\"asked\"");
  EXPECT_EQ(report.manifest.Size(1), 7U) << "what is there counts";
  EXPECT_EQ(report.unversioned_count, 1U);
  EXPECT_THAT(report.missing, ElementsAre("a/3.jpg"));
}

TEST(Index, AListingOfAnotherPlaceIsAnError) {
  ScriptedHttpServer server;
  server.Put("index.txt", "a/1.jpg\na/2.jpg\n");
  const auto report = Index(server.url());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), Code::kNotFound);
  EXPECT_THAT(report.error().message(), HasSubstr("a/1.jpg"));
}

TEST(Index, AServerThatFailsEndsIt) {
  ScriptedHttpServer server;
  server.Put("index.txt", "a/1.jpg\na/2.jpg\n");
  server.Put("a/2.jpg", "12");
  for (int i = 0; i < 1000; ++i)
    server.AnswerNext("a/1.jpg", {.status = 500});
  EXPECT_EQ(Index(server.url()).error().code(), Code::kUnavailable);
}

TEST(Index, RefusalsNameTheSource) {
  const TempDir dir;
  const auto report = Index(dir.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code(), Code::kInvalidArgument);
  EXPECT_THAT(report.error().message(), HasSubstr(dir.path()));
}

}  // namespace
}  // namespace optcache::storage
