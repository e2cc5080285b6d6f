// The figures on which the design rests, several machines: store reads, where hits are, and what
// moves. As in theory_test.cc.

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/simulation/scene.h"

namespace optcache::simulation {
namespace {

constexpr double kNearNumber = 0.002;

// One job on K nodes at capacity .3, per access: what policies that own samples by hash, and NoPFS,
// read from the store, find at the reader's own node, and at another while the reader waits.
TEST(Theory, OneJobOnSeveralNodes) {
  struct Row {
    PolicyKind policy;
    std::uint32_t nodes;
    double store;
    double local;
    double peer;
  };
  using enum PolicyKind;
  for (const std::uint32_t nodes : {4U, 16U, 64U}) {
    if (LeftOut(.3, nodes)) continue;
    const Reads run = RunOf({.samples = 100'000, .nodes = nodes});
    for (const Row& row : {Row{kPin, 4, .7000, .075, .225}, Row{kPin, 16, .7000, .019, .281},
                           Row{kPin, 64, .7000, .005, .295}, Row{kMin, 4, .7000, .075, .225},
                           Row{kMin, 16, .7000, .019, .281}, Row{kMin, 64, .7000, .005, .295},
                           Row{kNoPfs, 4, .704, .132, .164}, Row{kNoPfs, 16, .721, .066, .213},
                           Row{kNoPfs, 64, .730, .042, .228}, Row{kOptimal, 4, .7000, .300, 0},
                           Row{kOptimal, 16, .7001, .300, 0}, Row{kOptimal, 64, .7002, .2998, 0}}) {
      if (row.nodes != nodes) continue;
      SCOPED_TRACE(std::string(PolicyName(row.policy)) + ", nodes " + std::to_string(nodes));
      const PolicyResult result = Simulated(run, EqualSizes(run, .3), row.policy);
      EXPECT_NEAR(1 - result.hit_ratio, row.store, kNearNumber);
      EXPECT_NEAR(result.local_per_access, row.local, kNearNumber);
      EXPECT_NEAR(result.peer_per_access, row.peer, kNearNumber);
    }
  }
}

// NoPFS at capacity .7, where no cache has to read more than .3.
TEST(Theory, NoPfsWithMuchRoom) {
  if (!LongTests()) GTEST_SKIP() << "ten seconds: OPTCACHE_LONG=1";
  const auto store_reads = [](std::uint32_t nodes) {
    const Reads run = RunOf({.samples = 100'000, .nodes = nodes});
    return 1 - Simulated(run, EqualSizes(run, .7), PolicyKind::kNoPfs).hit_ratio;
  };
  EXPECT_NEAR(store_reads(4), .359, kNearNumber);
  EXPECT_NEAR(store_reads(16), .432, kNearNumber);
}

// The plan for one job: store reads / bound, and moves, whose floor is capacity - 1 / nodes.
TEST(Theory, PlanOfOneJob) {
  struct Row {
    std::uint32_t nodes;
    double capacity;
    double of_bound;
    double moved;
  };
  for (const std::uint32_t nodes : {1U, 4U, 16U, 64U}) {
    if (LeftOut(.3, nodes)) continue;
    const Reads run = RunOf({.samples = 100'000, .epochs = 12, .nodes = nodes});
    for (const Row& row :
         {Row{1, .3, 1, 0}, Row{4, .1, 1, 0}, Row{4, .3, 1.00001, .0495},
          Row{4, .7, 1.00010, .4501}, Row{4, .9, 1.00066, .6497}, Row{16, .1, 1.00002, .0378},
          Row{16, .3, 1.00007, .2377}, Row{16, .7, 1.00055, .6371}, Row{16, .9, 1.00380, .8372},
          Row{64, .1, 1.00006, .0844}, Row{64, .3, 1.00027, .2835}, Row{64, .7, 1.00230, .6829},
          Row{64, .9, 1.01378, .8817}}) {
      if (row.nodes != nodes || LeftOut(row.capacity)) continue;
      SCOPED_TRACE("nodes " + std::to_string(nodes) + ", " + std::to_string(row.capacity));
      const CacheOptions options = EqualSizes(run, row.capacity);
      const PolicyResult result = Simulated(run, options, PolicyKind::kOptimal);
      const auto bound = static_cast<double>(*BoundOf(run, options)->store_reads);
      EXPECT_GE(static_cast<double>(result.store_reads), bound);
      // Room that is left over is used since, which makes both better where there are many nodes.
      const double better = row.of_bound - 1 + kNearNumber;
      EXPECT_LE(static_cast<double>(result.store_reads) / bound, row.of_bound + kNearNumber);
      EXPECT_NEAR(result.moved_per_access, row.moved, better);
      EXPECT_LE(result.peer_per_access, better);
      for (const double tenth : result.hit_ratio_by_tenth)
        EXPECT_NEAR(tenth, row.capacity, .01);
    }
  }
}

// The plan for several jobs on K nodes at capacity .3: a node alone decides by its own next reads,
// which costs .001 to .005 against one memory for all.
TEST(Theory, PlanOfSeveralJobs) {
  struct Row {
    std::uint32_t jobs;
    std::uint32_t nodes;
    double hits;
    double moved;
  };
  for (const Row& row : {Row{2, 1, .5491, 0}, Row{2, 4, .5486, .41}, Row{2, 16, .5471, .51},
                         Row{4, 1, .6161, 0}, Row{4, 4, .6151, .46}, Row{4, 16, .6119, .57},
                         Row{8, 1, .6422, 0}, Row{8, 4, .6405, .48}, Row{8, 16, .6367, .60}}) {
    SCOPED_TRACE(std::to_string(row.jobs) + " jobs, nodes " + std::to_string(row.nodes));
    const Reads run = RunOf({.epochs = 12, .jobs = row.jobs, .nodes = row.nodes});
    const PolicyResult result = Simulated(run, EqualSizes(run, .3), PolicyKind::kOptimal);
    EXPECT_NEAR(result.hit_ratio, row.hits, kNearNumber);
    EXPECT_NEAR(result.moved_per_access, row.moved, .006);
    if (row.nodes > 1) continue;
    const auto bound = static_cast<double>(*BoundOf(run, EqualSizes(run, .3))->store_reads);
    EXPECT_NEAR(static_cast<double>(result.store_reads) / bound, 1, .0005);
  }
}

// Nobody knows how jobs will take turns: this is what knowing it is worth while their rates drift
// by a tenth.
TEST(Theory, UnknownInterleaving) {
  struct Row {
    std::uint32_t jobs;
    double oracle;
    double near;  // two jobs: by how their epochs happen to lie beside each other
  };
  for (const Row& row :
       {Row{2, .5588, .007}, Row{4, .6180, kNearNumber}, Row{8, .6422, kNearNumber}}) {
    const Reads run = RunOf({.epochs = 12, .jobs = row.jobs, .drift = .1});
    const CacheOptions options = EqualSizes(run, .3);
    const double oracle = Simulated(run, options, PolicyKind::kMin).hit_ratio;
    EXPECT_NEAR(oracle, row.oracle, row.near) << row.jobs;
  }
}

// Plans by the jobs' mean rates, made anew ten times an epoch, come close to it, and less close the
// more jobs there are.
TEST(Theory, PlansOfAnUnknownInterleaving) {
  struct Row {
    std::uint32_t jobs;
    double lost;
  };
  for (const Row& row : {Row{2, .005}, Row{4, .007}, Row{8, .012}}) {
    const Reads run = RunOf({.samples = 10'000, .epochs = 8, .jobs = row.jobs, .drift = .1});
    const CacheOptions options = EqualSizes(run, .3);
    const double oracle = Simulated(run, options, PolicyKind::kMin).hit_ratio;
    const double plan = Simulated(run, options, PolicyKind::kOptimal).hit_ratio;
    EXPECT_LE(plan, oracle) << row.jobs;
    EXPECT_GE(plan, oracle - row.lost) << row.jobs;
  }
}

}  // namespace
}  // namespace optcache::simulation
