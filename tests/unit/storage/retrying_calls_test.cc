// Stat and List of retrying_store.h.

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/retrying_store.h"
#include "support/growing_deadline.h"

namespace optcache::storage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A store whose Stat and List fail a number of times, and for a time.
class ShakyStore final : public ObjectStore {
 public:
  explicit ShakyStore(int failures) : failures_(failures) {}
  const std::string& name() const override { return name_; }
  Status Read(ReadRequest, ReadCallback) override { return {Code::kInternal, "not used"}; }
  Result<ObjectInfo> Stat(const std::string&, Deadline) override {
    if (Fails()) return Error(Code::kUnavailable, "not now");
    return ObjectInfo{.size = 1, .validator = {}};
  }
  Result<ObjectListing> List(Deadline, const ListProgress&) override {
    if (Fails()) return Error(Code::kUnavailable, "not now");
    return ObjectListing{};
  }
  void Shutdown() override {}
  void VisitCounters(const CounterVisitor&) const override {}
  void FailFor(Duration time) { until_ = SystemClock().Now() + time; }
  void FailNext() { failures_ = 1; }

 private:
  bool Fails() { return failures_-- > 0 || SystemClock().Now() < until_; }

  const std::string name_ = "shaky";
  int failures_;
  MonotonicTime until_{};
};

constexpr RetryOptions kQuickly = {.patience = std::chrono::minutes(1),
                                   .first_patience = std::chrono::minutes(1),
                                   .backoff = {.first = milliseconds(1), .limit = milliseconds(1)}};

TEST(RetryingCalls, RepeatsStatAndListToo) {
  const Deadline soon = Deadline::After(SystemClock(), seconds(60));
  EXPECT_TRUE(RetryingStore(std::make_unique<ShakyStore>(40), kQuickly).Stat("a", soon));
  EXPECT_TRUE(RetryingStore(std::make_unique<ShakyStore>(40), kQuickly).List(soon, {}));
}

// A wrong address shows soon; a store that has answered is waited for.
TEST(RetryingCalls, IsLessPatientWithAStoreThatHasNeverAnswered) {
  RetryOptions options = kQuickly;
  options.first_patience = milliseconds(20);
  const Deadline soon = Deadline::After(SystemClock(), seconds(60));
  RetryingStore wrong(std::make_unique<ShakyStore>(1 << 20), options);
  EXPECT_FALSE(wrong.Stat("a", soon).has_value());
  EXPECT_FALSE(wrong.List(soon, {}).has_value());
  auto shaky = std::make_unique<ShakyStore>(0);
  ShakyStore& inner = *shaky;
  RetryingStore right(std::move(shaky), options);
  ASSERT_TRUE(right.Stat("a", soon).has_value());
  inner.FailFor(milliseconds(200));
  EXPECT_TRUE(right.Stat("a", soon).has_value());
  inner.FailFor(milliseconds(200));
  EXPECT_TRUE(right.List(soon, {}).has_value());
}

TEST(RetryingCalls, LeavesListsToAStoreThatAsksAgainItself) {
  const RetryOptions options = {.backoff = {.first = milliseconds(1), .limit = milliseconds(1)},
                                .repeats_lists = false};
  const Deadline soon = Deadline::After(SystemClock(), seconds(60));
  RetryingStore store(std::make_unique<ShakyStore>(1), options);
  EXPECT_EQ(store.List(soon, {}).error().message(), "not now");
}

// What is asked for after a listing is waited for, for example the sizes of its files.
TEST(RetryingCalls, AListByPagesIsAnAnswer) {
  RetryOptions options = kQuickly;
  options.first_patience = Duration::zero();
  options.repeats_lists = false;
  const Deadline soon = Deadline::After(SystemClock(), seconds(60));
  auto shaky = std::make_unique<ShakyStore>(0);
  ShakyStore& inner = *shaky;
  RetryingStore store(std::move(shaky), options);
  ASSERT_TRUE(store.List(soon, {}).has_value());
  inner.FailNext();
  EXPECT_TRUE(store.Stat("a", soon).has_value());
}

TEST(RetryingCalls, ErrorsOfStatAndListSayHowOftenAndWhyNotMore) {
  RetryOptions options = kQuickly;
  const Deadline soon = Deadline::After(SystemClock(), seconds(60));
  std::string message;
  EXPECT_TRUE(HoldsForSomeDeadline(milliseconds(20), [&](Duration patience) {
    options.patience = patience;
    message = RetryingStore(std::make_unique<ShakyStore>(1 << 20), options)
                  .Stat("a", soon)
                  .error()
                  .message();
    return message != "not now";  // which says that there was one attempt
  }));
  EXPECT_THAT(message,
              testing::MatchesRegex("given up after [0-9]+ attempts in [0-9.]+ s: not now"));
  options.patience = kQuickly.patience;
  options.budget = {.share_of_successes = 0, .floor_per_second = 0, .saved_max = 0};
  RetryingStore once(std::make_unique<ShakyStore>(9), options);
  EXPECT_THAT(once.List(soon, {}).error().message(), testing::HasSubstr("budget"));
}

}  // namespace
}  // namespace optcache::storage
