// Random events against a coordinator; what must hold after each of them.

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"
#include "coordination/codec.h"
#include "coordination/desired_state.h"
#include "unit/coordinator/scenario.h"

namespace optcache::coordination {
namespace {

constexpr std::uint32_t kWorld = 3;
constexpr DatasetKey kManifests = 4;

class RandomEvents {
 public:
  explicit RandomEvents(std::uint64_t seed) : random_(seed) {}

  void Step() {
    const std::string node = "n" + std::to_string(random_.Below(4));
    const StreamId id = 1 + random_.Below(3);
    const auto rank = static_cast<Rank>(random_.Below(kWorld));
    switch (random_.Below(11)) {
      case 0:
        scenario_.Node(node);
        break;
      case 1:
        if (random_.Below(4) == 0) scenario_.Remove(node);
        break;
      case 2:
        scenario_.Restart(node);
        break;
      case 3:
        scenario_.At(node, rank, kWorld, id).position = random_.Below(1100);
        break;
      case 4:
        scenario_.At(node, rank, kWorld, id).pass += 1;
        scenario_.At(node, rank, kWorld, id).epoch += random_.Below(3);
        break;
      case 9:  // its process is started again
        scenario_.At(node, rank, kWorld, id).pass = 0;
        break;
      case 5:
        scenario_.At(node, rank, kWorld, id).ended = random_.Below(3) == 0;
        break;
      case 6:
        if (scenario_.dataset().inventory_wanted != 0) AnswerFrom(node, scenario_.dataset());
        for (const DatasetState& retiring : scenario_.state().retiring) {
          if (retiring.inventory_wanted != 0) AnswerFrom(node, retiring);
        }
        break;
      case 7:
        scenario_.Advance(std::chrono::milliseconds(random_.Below(20000)));
        break;
      case 10:
        if (random_.Below(4) == 0) Reindex();
        scenario_.Stream(node, id).dataset_key = 1 + random_.Below(kManifests);
        break;
      default:
        scenario_.Node(node).capacity = random_.Below(2000);
        break;
    }
    random_.Below(3) == 0 ? scenario_.Tick() : scenario_.Second();
  }

  void Check() {
    const DesiredState& state = scenario_.state();
    const Version& version = state.version;
    EXPECT_TRUE(state == before_ || version > before_.version) << FormatVersion(version);
    EXPECT_EQ(ParseDesiredState(ToJson(state)), state);
    CheckMembers(state);
    for (const DatasetState* const dataset : AllDatasets(state))
      CheckDataset(state, *dataset);
    CheckGrant(state);
    before_ = state;
  }

 private:
  void Reindex() {
    DatasetSpec spec = Scenario::Imagenet();
    spec.key = 1 + random_.Below(kManifests);
    spec.manifest_digest = std::string(2, static_cast<char>('a' + spec.key - 1));
    scenario_.coordinator().SetDatasets({spec}, scenario_.now());
  }

  void AnswerFrom(const std::string& node, const DatasetState& dataset) {
    // May be refused: the node need not be a member.
    const Status status =
        scenario_.coordinator().OnInventory({.node = node,
                                             .incarnation = scenario_.Node(node).incarnation,
                                             .dataset = dataset.name,
                                             .request = dataset.inventory_wanted,
                                             .ids = {static_cast<SampleId>(random_.Below(1000))}});
    EXPECT_NE(status.code(), Code::kInvalidArgument);
  }

  // An id names one run of one node for ever.
  void CheckMembers(const DesiredState& state) {
    MemberId last = 0;
    for (const Member& member : state.members) {
      EXPECT_GT(member.id, last);
      last = member.id;
      const auto [known, added] = names_.emplace(member.id, member.name);
      EXPECT_EQ(known->second, member.name);
      EXPECT_TRUE(!added || member.id > highest_) << member.id;
      present_.insert(member.id);
    }
    for (const MemberId id : present_) {
      const bool listed = std::ranges::any_of(state.members, [&](auto& m) { return m.id == id; });
      if (!listed) gone_.insert(id);
    }
    for (const Member& member : state.members)
      EXPECT_FALSE(gone_.contains(member.id));
    highest_ = std::max(highest_, last);
  }

  void CheckDataset(const DesiredState& state, const DatasetState& dataset) {
    EXPECT_LE(dataset.planned, state.version);
    if (!dataset.base_digest.empty()) {
      EXPECT_NE(scenario_.coordinator().BaseBytes(dataset.base_digest), nullptr);
    }
    for (const StreamState& stream : dataset.streams) {
      EXPECT_EQ(stream.node_of_rank.size(), kWorld);
      if (!stream.complete) continue;
      EXPECT_GE(stream.cut.pass, stream.first_pass);
      EXPECT_LT(stream.cut.position, PassLength(stream.recipe));
      for (const MemberId id : stream.node_of_rank)
        EXPECT_TRUE(id == 0 || names_.contains(id));
    }
  }

  // One Dataset, whose manifests share what it was granted.
  static void CheckGrant(const DesiredState& state) {
    EXPECT_EQ(state.datasets.size(), 1U);
    EXPECT_LE(state.retiring.size(), kMaxRetiringOfDataset);
    std::set<std::string> digests;
    ByteCount granted = 0;
    for (const DatasetState* const dataset : AllDatasets(state)) {
      EXPECT_TRUE(digests.insert(dataset->manifest_digest).second);
      for (const MemberCapacity& capacity : dataset->capacities)
        granted += capacity.bytes;
    }
    EXPECT_LE(granted, Scenario::Imagenet().capacity);
  }

  Random random_;
  Scenario scenario_;
  DesiredState before_;
  std::map<MemberId, std::string> names_;
  std::set<MemberId> present_;
  std::set<MemberId> gone_;
  MemberId highest_ = 0;
};

TEST(CoordinatorProperties, HoldAfterRandomEvents) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomEvents events(seed);
    for (int step = 0; step < 150; ++step) {
      events.Step();
      events.Check();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace optcache::coordination
