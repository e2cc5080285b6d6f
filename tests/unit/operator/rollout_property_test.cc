// Rollouts at random: nodes come, go and answer late, jobs read on, the spec changes, writes are
// lost, and each step is made from what the CachePlan's status says, as by a leader that has just
// begun.

#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"
#include "unit/coordinator/rollout_story.h"
#include "unit/operator/kept_rollout.h"

namespace optcache::reconcile {
namespace {

using coordination::BatchOf;
using coordination::ReadingStream;
using coordination::RolloutNode;
using coordination::RolloutPhase;
using coordination::RolloutState;
using coordination::RolloutStory;
using kube::Json;

constexpr int kSteps = 400;
constexpr int kSettlingSteps = 2000;

class Walk {
 public:
  explicit Walk(std::uint64_t seed) : random_(seed) {
    story_.predicted["third"] = 500;
    story_.costs["new"] = OneIn(3) ? 900 : 400;  // some updates turn out bad
    story_.Place({"b", "d", "f"});
    story_.inputs.knobs.at_epoch_boundary = OneIn(2);
    story_.inputs.knobs.after = OneIn(2) ? 1 : 2;
  }

  void Step() {
    story_.inputs.now += static_cast<std::int64_t>(Below(30));
    Disturb();
    if (OneIn(20)) BeginToLead();
    Look();
    for (RolloutNode& node : story_.inputs.nodes) {
      if (OneIn(3)) story_.Answer(node);
    }
  }

  // Everything answers from now on, and nothing else changes.
  void Settle() {
    story_.inputs.knobs.paused = false;
    story_.inputs.knobs.acknowledge = true;
    story_.inputs.knobs.partition = 0;
    for (int i = 0; i < kSettlingSteps; ++i) {
      Look();
      if (story_.state.phase == RolloutPhase::kStopped) break;
      if (story_.state.phase == RolloutPhase::kComplete &&
          story_.state.revision == story_.inputs.revision && i > 10)
        break;
      story_.AllAnswer();
      if (i % 3 == 0) ReadOn();
    }
    story_.AllAnswer();
    const RolloutState& state = story_.state;
    if (state.phase == RolloutPhase::kStopped) {
      ASSERT_TRUE(state.failed);
      EXPECT_NE(state.current, story_.inputs.revision);
    } else {
      ASSERT_EQ(state.phase, RolloutPhase::kComplete);
      EXPECT_EQ(state.current, story_.inputs.revision);
    }
    for (const RolloutNode& node : story_.inputs.nodes)
      EXPECT_EQ(node.revision, state.current) << node.name;
  }

  std::uint64_t activations() const { return activations_; }
  RolloutPhase end() const { return story_.state.phase; }

 private:
  std::uint64_t Below(std::uint64_t limit) { return random_.Below(limit); }
  bool OneIn(std::uint64_t times) { return Below(times) == 0; }

  void Disturb() {
    auto& knobs = story_.inputs.knobs;
    if (OneIn(40)) knobs.paused = !knobs.paused;
    if (OneIn(40)) knobs.partition = Below(3);
    if (OneIn(40)) knobs.max_unavailable = {.amount = 1 + Below(2), .percent = false};
    if (OneIn(60)) knobs.restarted_at = "2027-01-15T08:00:" + std::to_string(10 + Below(50)) + "Z";
    if (OneIn(50)) {
      const char* const revisions[] = {"old", "new", "other"};
      story_.inputs.revision = revisions[Below(3)];
    }
    if (OneIn(80)) Edit();
    if (OneIn(30)) ComeOrGo();
    if (OneIn(20)) BeginOrEnd();
    if (OneIn(40)) story_.inputs.memory = 1000 * (1 + Below(3));
    if (OneIn(4)) ReadOn();
  }
  // A leader that has just begun hears of nodes and streams one by one.
  void BeginToLead() {
    auto& inputs = story_.inputs;
    const auto nodes = inputs.nodes;
    const auto streams = inputs.streams;
    inputs.all_known = false;
    for (std::uint64_t looks = 1 + Below(3); looks > 0; --looks) {
      inputs.nodes = nodes;
      inputs.streams = streams;
      std::erase_if(inputs.nodes, [this](const RolloutNode&) { return OneIn(2); });
      std::erase_if(inputs.streams, [this](const ReadingStream&) { return OneIn(2); });
      Look();
    }
    inputs.nodes = nodes;
    inputs.streams = streams;
    inputs.all_known = true;
  }
  void ComeOrGo() {
    auto& nodes = story_.inputs.nodes;
    if (OneIn(2) && nodes.size() > 1) {
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(Below(nodes.size())));
      return;
    }
    const std::string name(1, static_cast<char>('a' + Below(8)));
    const auto at = std::ranges::lower_bound(nodes, name, {}, &RolloutNode::name);
    if (at != nodes.end() && at->name == name) return;
    nodes.insert(at, {.name = name, .planned = true});
  }
  void BeginOrEnd() {
    auto& streams = story_.inputs.streams;
    if (OneIn(2) && !streams.empty()) {
      streams.erase(streams.begin());
    } else if (streams.size() < 3) {
      story_.Read(++last_stream_, static_cast<PassNumber>(Below(3)));
    }
  }
  void ReadOn() {
    story_.EndPass();
    while (story_.inputs.passes.size() > 9)
      story_.inputs.passes.erase(story_.inputs.passes.begin());
  }

  // Somebody who may has written to the status.
  void Edit() {
    Json& rollout = kept_.json();
    if (!rollout.is_object()) return;
    edited_ = true;
    const char* const phases[] = {"Activate", "Observe", "GoBack", "Stopped", "Complete"};
    rollout["phase"] = phases[Below(5)];
    const char* const fields[] = {"activated", "marks", "sums", "failed", "previous"};
    rollout.erase(fields[Below(5)]);
    if (OneIn(4)) rollout["activated"] = {{"revision", "other"}, {"upTo", "z"}};
    if (OneIn(4)) rollout["revision"] = "new";
  }

  // One reconciliation, by a leader that knows nothing but what is written.
  void Look() {
    const RolloutState before = kept_.Read();
    const RolloutState after = coordination::Advance(before, story_.inputs);
    EXPECT_EQ(after, coordination::Advance(before, story_.inputs));
    Check(before, after);
    if (OneIn(10)) {  // the write is lost
      story_.state = before;
      return;
    }
    kept_.Write(after);
    if (story_.inputs.all_known) edited_ = false;
    story_.state = kept_.Read();
    EXPECT_EQ(story_.state, after);
  }

  std::uint64_t Ordered(const RolloutState& state) const {
    if (!state.activated || state.activated->revision != state.revision) return 0;
    return static_cast<std::uint64_t>(std::ranges::count_if(
        story_.inputs.nodes,
        [&](const RolloutNode& node) { return node.name <= state.activated->up_to; }));
  }
  void Check(const RolloutState& before, const RolloutState& after) {
    const auto& inputs = story_.inputs;
    if (before.phase == RolloutPhase::kStopped && inputs.revision == before.revision &&
        inputs.knobs.restarted_at == before.restarted_at && !edited_) {
      RolloutState noted = before;
      noted.observers = after.observers;
      noted.disturbed = after.disturbed;
      EXPECT_EQ(after, noted);
    }
    if (!inputs.all_known) {
      if (!before.current.empty()) {
        EXPECT_EQ(after, before);
      }
      return;
    }
    const bool activates = before.phase == RolloutPhase::kActivate &&
                           after.phase == RolloutPhase::kActivate &&
                           before.revision == after.revision &&
                           before.restarted_at == after.restarted_at;  // a step of its own
    if (!activates) return;
    const std::uint64_t nodes = inputs.nodes.size();
    EXPECT_LE(Ordered(after) + std::min(inputs.knobs.partition, nodes), nodes);
    if (Ordered(after) <= Ordered(before)) return;
    const std::uint64_t more = Ordered(after) - Ordered(before);
    ++activations_;
    EXPECT_FALSE(inputs.knobs.paused);
    EXPECT_LE(more, BatchOf(inputs.knobs.max_unavailable, nodes));
    for (const RolloutNode& node : inputs.nodes) {  // those before have gone over
      if (node.name <= before.activated->up_to) {
        EXPECT_EQ(node.revision, before.revision) << node.name;
      }
    }
    if (!inputs.knobs.at_epoch_boundary) return;
    ASSERT_TRUE(before.marks);
    for (const coordination::PassMark& mark : *before.marks) {
      for (const ReadingStream& stream : inputs.streams) {
        if (stream.id == mark.stream) {
          EXPECT_NE(stream.pass, mark.pass);
        }
      }
    }
  }

  Random random_;
  RolloutStory story_;
  KeptRollout kept_;
  bool edited_ = false;  // since the last write by one who knows all
  StreamId last_stream_ = 0;
  std::uint64_t activations_ = 0;
};

TEST(RolloutProperty, KeepsItsPromisesWhateverHappens) {
  const std::uint64_t first = TestSeed(7001);
  std::uint64_t activations = 0;
  std::set<RolloutPhase> ends;
  for (std::uint64_t seed = first; seed < first + 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
    Walk walk(seed);
    for (int i = 0; i < kSteps; ++i)
      walk.Step();
    walk.Settle();
    activations += walk.activations();
    ends.insert(walk.end());
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(activations, 100U);  // the walks led somewhere
  EXPECT_EQ(ends, (std::set{RolloutPhase::kComplete, RolloutPhase::kStopped}));
}

}  // namespace
}  // namespace optcache::reconcile
