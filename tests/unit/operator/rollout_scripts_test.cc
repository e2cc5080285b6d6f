// Rollouts by scripts: each ends in the same way, whether one leader sees it through or another
// begins after every step, and whichever writes of the status are lost.

#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"
#include "unit/coordinator/rollout_story.h"
#include "unit/operator/kept_rollout.h"

namespace optcache::reconcile {
namespace {

using coordination::ReadingStream;
using coordination::RolloutNode;
using coordination::RolloutState;
using coordination::RolloutStory;

constexpr int kMostRounds = 2000;
constexpr int kStillRounds = 12;  // nothing has happened for this long: that is the end

// What happens when the rollout is first seen in this phase, or says this reason.
struct Turn {
  std::string when;
  std::function<void(RolloutStory&)> what;
};

struct Script {
  std::string name;
  std::string end;  // phase, revision in force, reason of the failure
  std::function<void(RolloutStory&)> begin;
  std::vector<Turn> turns;
};

void CostMore(RolloutStory& story) {
  story.predicted["new"] = story.costs["new"] = 640;
  story.inputs.knobs.acknowledge = true;
}
void CostMoreThanPredicted(RolloutStory& story) {
  story.costs["new"] = 900;
}
void RestartNode(RolloutStory& story) {
  ++story.Node("b").incarnation;
  story.Node("b").revision.clear();
  story.Node("b").trials.clear();
}
void AskFor(RolloutStory& story, const char* revision) {
  story.inputs.revision = revision;
}

std::vector<Script> Scripts() {
  const auto nothing = [](RolloutStory&) {};
  return {
      {"complete", "Complete new ", nothing, {}},
      {"paused",
       "Complete new ",
       nothing,
       {{"Activate", [](RolloutStory& story) { story.inputs.knobs.paused = true; }},
        {"Paused", [](RolloutStory& story) { story.inputs.knobs.paused = false; }}}},
      {"partition",
       "Complete new ",
       [](RolloutStory& story) { story.inputs.knobs.partition = 1; },
       {{"Partitioned", [](RolloutStory& story) { story.inputs.knobs.partition = 0; }}}},
      {"predicted worse",
       "Prepare old ",
       [](RolloutStory& story) { story.predicted["new"] = 900; },
       {{"PredictedWorse", nothing}}},
      {"predicted worse until memory is more",
       "Complete new ",
       [](RolloutStory& story) { story.predicted["new"] = 900; },
       {{"PredictedWorse",
         [](RolloutStory& story) {
           story.inputs.memory *= 2;
           story.predicted["new"] = story.costs["new"];
         }}}},
      {"digest mismatch",
       "Stopped old DigestMismatch",
       [](RolloutStory& story) { story.odd_digests["b"] = "odd"; },
       {}},
      {"prepare failed",
       "Stopped old PrepareFailed",
       [](RolloutStory& story) { story.errors["c"] = "out of memory"; },
       {}},
      {"a node comes that cannot prepare",
       "Stopped old PrepareFailed",
       [](RolloutStory& story) { story.errors["d"] = "out of memory"; },
       {{"Observe",
         [](RolloutStory& story) {
           story.inputs.nodes.push_back({.name = "d", .revision = "old", .planned = true});
         }}}},
      {"below predicted", "Stopped old BelowPredicted", CostMoreThanPredicted, {}},
      {"worse than previous", "Stopped old WorseThanPrevious", CostMore, {}},
      {"worse than previous, and a node restarts",
       "Stopped old WorseThanPrevious",
       CostMore,
       {{"Observe", RestartNode}}},
      {"undo",
       "Complete old ",
       nothing,
       {{"Observe", [](RolloutStory& story) { AskFor(story, "old"); }}}},
      {"undo while it is paused",
       "Complete old ",
       nothing,
       {{"Activate", [](RolloutStory& story) { story.inputs.knobs.paused = true; }},
        {"Paused", [](RolloutStory& story) { AskFor(story, "old"); }}}},
      {"another update",
       "Complete other ",
       nothing,
       {{"Observe", [](RolloutStory& story) { AskFor(story, "other"); }}}},
      {"a job ends",
       "Complete new ",
       CostMoreThanPredicted,
       {{"Observe", [](RolloutStory& story) { story.inputs.streams.pop_back(); }}}},
      {"memory goes",
       "Complete new ",
       CostMoreThanPredicted,
       {{"Observe", [](RolloutStory& story) { story.inputs.memory /= 2; }}}},
      {"a node restarts", "Complete new ", nothing, {{"Observe", RestartNode}}},
      {"a node goes",
       "Complete new ",
       nothing,
       {{"Activate", [](RolloutStory& story) { story.inputs.nodes.pop_back(); }}}},
  };
}

struct Trouble {
  bool leaders_change = false;  // after every step
  bool writes_are_lost = false;
};

class Play {
 public:
  Play(const Script& script, Trouble trouble, std::uint64_t seed)
      : script_(script), trouble_(trouble), random_(seed) {
    story_.inputs.memory = 6400;
    story_.inputs.knobs.at_epoch_boundary = true;
    story_.Place({"a", "b", "c"});
    story_.Read(1, 4);
    story_.Read(2, 7);
    for (int round = 0; round < kStillRounds; ++round)
      Round();
    script.begin(story_);
    story_.inputs.revision = "new";
  }

  // Phase, revision in force, reason of the failure.
  std::string End() {
    int still = 0;
    for (int round = 0; round < kMostRounds && still < kStillRounds; ++round)
      still = Round() ? 0 : still + 1;
    EXPECT_EQ(turn_, script_.turns.size());
    const RolloutState& state = story_.state;
    return fmt::format("{} {} {}", story_.Phase(), state.current,
                       state.failed ? state.failed->reason : "");
  }

 private:
  bool OneIn(std::uint64_t times) { return random_.Below(times) == 0; }

  // True: the rollout went on, or the script did.
  bool Round() {
    const RolloutState before = kept_.Read();
    story_.inputs.now += 5;
    Look();
    if (trouble_.leaders_change) ChangeLeader();
    Answer();
    if (++rounds_ % 3 == 0) ReadOn();
    const bool goes_on = before.phase != story_.state.phase || before.sums != story_.state.sums ||
                         before.activated != story_.state.activated;
    return TakeTurn() || goes_on;
  }

  // A leader knows nothing but what is written.
  void Look() {
    const RolloutState before = kept_.Read();
    const RolloutState after = coordination::Advance(before, story_.inputs);
    const bool lost = trouble_.writes_are_lost && OneIn(3);
    if (!lost) kept_.Write(after);
    story_.state = kept_.Read();
    EXPECT_EQ(story_.state, lost ? before : after);
  }

  // One that has just begun hears of nodes and streams one by one.
  void ChangeLeader() {
    auto& inputs = story_.inputs;
    const std::vector<RolloutNode> nodes = inputs.nodes;
    const std::vector<ReadingStream> streams = inputs.streams;
    std::erase_if(inputs.nodes, [this](const RolloutNode&) { return OneIn(2); });
    std::erase_if(inputs.streams, [this](const ReadingStream&) { return OneIn(2); });
    inputs.all_known = false;
    Look();
    Answer();
    const std::vector<RolloutNode> heard = std::exchange(inputs.nodes, nodes);
    for (const RolloutNode& node : heard)
      story_.Node(node.name) = node;
    inputs.streams = streams;
    inputs.all_known = true;
  }

  void Answer() {
    story_.AllAnswer();
    const RolloutState& state = story_.state;
    for (const RolloutNode& node : story_.inputs.nodes) {
      const bool abandoned = state.activated && node.revision == state.activated->revision;
      EXPECT_TRUE(node.revision == state.current || node.revision == state.revision || abandoned)
          << node.name << " follows " << node.revision;
    }
  }

  void ReadOn() {
    story_.EndPass();
    while (story_.inputs.passes.size() > 8)
      story_.inputs.passes.erase(story_.inputs.passes.begin());
  }

  bool TakeTurn() {
    if (turn_ == script_.turns.size() || story_.inputs.revision == "old") return false;
    const Turn& turn = script_.turns[turn_];
    if (turn.when != story_.Phase() && turn.when != story_.Reason()) return false;
    ++turn_;
    turn.what(story_);
    return true;
  }

  const Script& script_;
  Trouble trouble_;
  Random random_;
  RolloutStory story_;
  KeptRollout kept_;
  std::size_t turn_ = 0;
  int rounds_ = 0;
};

TEST(RolloutScripts, EndInTheSameWayWhoeverLeads) {
  const std::uint64_t first = TestSeed(7101);
  for (const Script& script : Scripts()) {
    SCOPED_TRACE(script.name);
    EXPECT_EQ(Play(script, {}, first).End(), script.end);
    for (std::uint64_t seed = first; seed < first + 4; ++seed) {
      SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
      EXPECT_EQ(Play(script, {.leaders_change = true}, seed).End(), script.end);
      EXPECT_EQ(Play(script, {.writes_are_lost = true}, seed).End(), script.end);
      const Trouble both{.leaders_change = true, .writes_are_lost = true};
      EXPECT_EQ(Play(script, both, seed).End(), script.end);
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace optcache::reconcile
