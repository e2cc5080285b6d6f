#include "sidecar/prefetch/name_claims.h"

#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

struct Process {
  std::int32_t id = 0;
  std::string job;
  std::uint32_t world = 1;
  Rank rank = 0;
  std::string asked = "train";
  std::string name;
};

// Ranks attach and end, as at a sidecar.
class NameClaimsTest : public testing::Test {
 protected:
  std::string Attach(Process process) {
    std::vector<NameClaim> others;
    for (const Process& other : reading_)
      others.push_back(ClaimOf(other));
    process.name = NameFor(ClaimOf(process), others);
    reading_.push_back(process);
    return process.name;
  }
  void End(std::int32_t id) {
    std::erase_if(reading_, [id](const Process& process) { return process.id == id; });
  }
  static NameClaim ClaimOf(const Process& process) {
    return {.asked = process.asked,
            .name = process.name,
            .job = process.job,
            .process = process.id,
            .world = process.world,
            .rank = process.rank};
  }

  std::vector<Process> reading_;
};

TEST_F(NameClaimsTest, EachProcessThatIsAWholeJobHasANameOfItsOwn) {
  EXPECT_EQ(Attach({.id = 10}), "train");
  EXPECT_EQ(Attach({.id = 11}), "train-2");
  EXPECT_EQ(Attach({.id = 12}), "train-3");
  EXPECT_EQ(Attach({.id = 13, .asked = "val"}), "val");
}

TEST_F(NameClaimsTest, AJobThatComesAgainFindsItsName) {
  EXPECT_EQ(Attach({.id = 10}), "train");
  EXPECT_EQ(Attach({.id = 11}), "train-2");
  End(10);
  EXPECT_EQ(Attach({.id = 12}), "train");
  End(11);
  EXPECT_EQ(Attach({.id = 13}), "train-2");
}

TEST_F(NameClaimsTest, AProcessThatAttachesAgainKeepsItsName) {
  EXPECT_EQ(Attach({.id = 10}), "train");
  EXPECT_EQ(Attach({.id = 10}), "train");
  EXPECT_EQ(Attach({.id = 11}), "train-2");
  End(10);
  EXPECT_EQ(Attach({.id = 11}), "train-2");
}

TEST_F(NameClaimsTest, RanksOfAKnownJobShareItsNameHoweverTheyInterleave) {
  EXPECT_EQ(Attach({.id = 10, .job = "a", .world = 2, .rank = 0}), "train");
  EXPECT_EQ(Attach({.id = 21, .job = "b", .world = 2, .rank = 1}), "train-2");
  EXPECT_EQ(Attach({.id = 11, .job = "a", .world = 2, .rank = 1}), "train");
  End(10);
  EXPECT_EQ(Attach({.id = 20, .job = "b", .world = 2, .rank = 0}), "train-2");
  EXPECT_EQ(Attach({.id = 12, .job = "a", .world = 2, .rank = 0}), "train");
}

TEST_F(NameClaimsTest, RanksOfAKnownJobWhoseWorldsDifferMeetSoThatTheyAreTold) {
  EXPECT_EQ(Attach({.id = 10, .job = "a", .world = 2, .rank = 0}), "train");
  EXPECT_EQ(Attach({.id = 11, .job = "a", .world = 3, .rank = 1}), "train");
}

TEST_F(NameClaimsTest, RanksOfNoKnownJobAreOneWhereTheyFit) {
  EXPECT_EQ(Attach({.id = 10, .world = 2, .rank = 0}), "train");
  EXPECT_EQ(Attach({.id = 11, .world = 2, .rank = 1}), "train");
  EXPECT_EQ(Attach({.id = 20, .world = 2, .rank = 0}), "train-2");
  EXPECT_EQ(Attach({.id = 21, .world = 2, .rank = 1}), "train-2");
  EXPECT_EQ(Attach({.id = 30, .world = 4, .rank = 3}), "train-3");
}

// A variable that the user set for all that he starts.
TEST_F(NameClaimsTest, OneRankInTwoProcessesIsTwoJobsWhateverTheySay) {
  EXPECT_EQ(Attach({.id = 10, .job = "a"}), "train");
  EXPECT_EQ(Attach({.id = 11, .job = "a"}), "train-2");
}

TEST_F(NameClaimsTest, ANameThatSomebodyAskedForIsTaken) {
  EXPECT_EQ(Attach({.id = 10}), "train");
  EXPECT_EQ(Attach({.id = 10, .asked = "train-2"}), "train-2");
  EXPECT_EQ(Attach({.id = 11}), "train-3");
  EXPECT_EQ(Attach({.id = 12, .asked = "train-2"}), "train-2-2");
}

TEST_F(NameClaimsTest, JobsNeverShareANameWhateverTheOrderTheyComeIn) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    reading_.clear();
    std::mt19937 generator(seed);
    const auto below = [&generator](std::uint32_t bound) {
      return std::uniform_int_distribution<std::uint32_t>(0, bound - 1)(generator);
    };
    std::map<std::string, std::string> name_of;  // by job
    for (int step = 0; step < 60; ++step) {
      const std::uint32_t job = below(5);
      const Rank rank = below(job + 1);
      const auto id = static_cast<std::int32_t>(100 * (job + 1) + rank);
      const std::string word(1, static_cast<char>('a' + job));
      End(id);
      if (below(3) == 0) continue;
      Attach({.id = id, .job = word, .world = job + 1, .rank = rank});
      name_of.clear();
      for (const Process& process : reading_) {
        const auto [known, is_new] = name_of.emplace(process.job, process.name);
        EXPECT_EQ(known->second, process.name) << "ranks of job " << word << ", seed " << seed;
      }
      std::map<std::string, std::string> job_of;
      for (const auto& [who, name] : name_of)
        EXPECT_TRUE(job_of.emplace(name, who).second) << name << " twice, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace optcache::sidecar
