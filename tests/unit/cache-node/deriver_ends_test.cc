#include "cache-node/planning/deriver_ends.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

namespace optcache::node {
namespace {

constexpr std::chrono::minutes kPatience(1);

PlanTask TaskOfTwoWindows() {
  constexpr std::uint32_t kSamples = 1000;
  return {.streams = {{.id = 1,
                       .recipe = {.sampler_kind = 1, .size = kSamples, .world = 1},
                       .node_of_rank = {1}}},
          .capacities = {{.member = 1, .bytes = kSamples / 3}},
          .sizes = plan::Sizes::Equal(kSamples, 1)};
}

// A deriver that is held where it tells of its first window. It derives a second one if it is let
// go and not stopped.
class HeldDeriver {
 public:
  // Returns when the deriver is held.
  std::unique_ptr<PlanDeriver> Start() {
    auto deriver =
        std::make_unique<PlanDeriver>([this](const DerivedWindow& window) { Told(window); });
    deriver->Begin(TaskOfTwoWindows());
    EXPECT_EQ(is_held_.get_future().wait_for(kPatience), std::future_status::ready);
    return deriver;
  }
  void LetGo() { let_go_.set_value(); }
  bool WaitForEnd() { return ended_.wait_for(kPatience) == std::future_status::ready; }
  bool has_ended() const {
    return ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  int told() const { return told_; }

 private:
  struct AtEndOfThread {
    ~AtEndOfThread() { ends.set_value(); }
    std::promise<void>& ends;
  };

  void Told(const DerivedWindow& window) {
    EXPECT_TRUE(window.status.ok()) << window.status.ToString();
    if (++told_ > 1) return;
    thread_local const AtEndOfThread end{ends_};
    is_held_.set_value();
    EXPECT_EQ(let_go_.get_future().wait_for(kPatience), std::future_status::ready);
  }

  std::atomic<int> told_ = 0;
  std::promise<void> is_held_;
  std::promise<void> let_go_;
  std::promise<void> ends_;
  std::future<void> ended_ = ends_.get_future();
};

TEST(DeriverEnds, StopsWhatItTakesAndWaitsForItsEnd) {
  HeldDeriver first;
  HeldDeriver second;
  {
    DeriverEnds ends;
    ends.Take(first.Start());
    ends.Take(second.Start());
    second.LetGo();
    EXPECT_TRUE(second.WaitForEnd()) << "it is stopped while the first is waited for";
    EXPECT_FALSE(first.has_ended());
    first.LetGo();
  }
  EXPECT_TRUE(first.has_ended());
  EXPECT_EQ(first.told(), 1);
  EXPECT_EQ(second.told(), 1);
}

TEST(DeriverEnds, TakesOneThatHasNothingToDo) {
  DeriverEnds ends;
  ends.Take(std::make_unique<PlanDeriver>([](const DerivedWindow&) {}));
}

}  // namespace
}  // namespace optcache::node
