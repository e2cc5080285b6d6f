#include "storage/internal/stat_many.h"

#include <atomic>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/fake_object_store.h"

namespace optcache::storage::internal {
namespace {

StatManyOptions Options(size_t count) {
  return {.count = count, .concurrent_max = 4, .deadline = Deadline(MonotonicTime::max())};
}

TEST(StatMany, GivesEveryObjectsAnswerOnce) {
  constexpr size_t kObjects = 1000;
  FakeObjectStore store;
  for (size_t i = 0; i < kObjects; i += 2)
    store.Put(fmt::format("o{}", i), std::string(i, 'x'));
  std::vector<std::atomic<int>> answers(kObjects);
  std::atomic<size_t> last_report = 0;
  const Status status = StatMany(
      store, Options(kObjects), [](size_t i) { return fmt::format("o{}", i); },
      [&](size_t i, const Result<ObjectInfo>& info) {
        ++answers[i];
        EXPECT_EQ(info.has_value(), i % 2 == 0);
        EXPECT_EQ(info ? info->size : i, i);
      },
      [&](size_t done) { last_report = std::max(last_report.load(), done); });
  EXPECT_TRUE(status.ok());
  for (const auto& count : answers)
    EXPECT_EQ(count, 1);
  EXPECT_EQ(last_report, kObjects);
}

TEST(StatMany, NothingToAskIsDone) {
  FakeObjectStore store;
  EXPECT_TRUE(StatMany(
                  store, Options(0), [](size_t) { return std::string(); },
                  [](size_t, const Result<ObjectInfo>&) {}, [](size_t) {})
                  .ok());
}

class DownStore final : public ObjectStore {
 public:
  const std::string& name() const override { return name_; }
  Status Read(ReadRequest, ReadCallback) override { return {Code::kUnavailable, "down"}; }
  Result<ObjectInfo> Stat(const std::string&, Deadline) override {
    ++asked;
    return Error(Code::kUnavailable, "down");
  }
  Result<ObjectListing> List(Deadline, const ListProgress&) override {
    return Error(Code::kUnavailable, "down");
  }
  void Shutdown() override {}
  void VisitCounters(const CounterVisitor&) const override {}

  std::atomic<int> asked = 0;

 private:
  const std::string name_ = "down";
};

TEST(StatMany, EndsWithTheFirstError) {
  DownStore store;
  const Status status = StatMany(
      store, Options(1'000'000), [](size_t) { return std::string("a"); },
      [](size_t, const Result<ObjectInfo>&) { FAIL(); }, [](size_t) {});
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_LE(store.asked, 4);
}

}  // namespace
}  // namespace optcache::storage::internal
