#include "simulation/reads.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace optcache::simulation {
namespace {

// Job j reads 10j + pass, again and again: a read says where it comes from.
std::vector<SampleId> Telling(std::uint32_t job, PassNumber pass) {
  return std::vector<SampleId>(10, 10 * job + pass);
}

Reads Made(const Pace& pace) {
  const Result<Reads> run = MakeReads(100, pace, Telling);
  EXPECT_TRUE(run.has_value()) << run.error().ToString();
  return *run;
}

std::size_t ReadsOf(const Reads& run, std::uint8_t job) {
  return static_cast<std::size_t>(std::count_if(run.reads.begin(), run.reads.end(),
                                                [job](const Read& r) { return r.job == job; }));
}

TEST(MakeReads, OneJobReadsPassAfterPassByRanksOnNodes) {
  const Reads run = Made({.epochs = 2, .ranks = 4, .nodes = 3});
  ASSERT_EQ(run.reads.size(), 20U);
  for (std::size_t t = 0; t < 20; ++t) {
    const std::size_t position = t % 10;
    EXPECT_EQ(run.reads[t].sample, t / 10);
    EXPECT_EQ(run.reads[t].reader, position % 4 % 3);
    EXPECT_EQ(run.reads[t].tenth, position);
  }
  EXPECT_EQ(run.steady_from(), 10U);
  EXPECT_EQ(Made({.epochs = 1}).steady_from(), 0U);
}

TEST(MakeReads, PassesMayBeReadInPart) {
  const Reads run = Made({.jobs = {{.ahead = 0.5}}, .epochs = 5, .pass_length = 0.38});
  EXPECT_EQ(run.jobs[0].pass_reads, 4U);
  ASSERT_EQ(run.reads.size(), 20U);
  for (std::size_t t = 0; t < 20; ++t) {
    EXPECT_EQ(run.reads[t].sample, (t + 2) / 4) << t;
    EXPECT_EQ(run.reads[t].tenth, (t + 2) % 4 * 10 / 4) << t;
  }
  EXPECT_EQ(run.steady_from(), 12U) << "after as many passes as make a whole one";
  EXPECT_EQ(Made({.epochs = 3, .pass_length = 0.38}).steady_from(), 0U);
  EXPECT_EQ(Made({.epochs = 3, .pass_length = 0.001}).reads.size(), 3U) << "one read at least";
}

TEST(MakeReads, JobsOfOneRateTakeTurns) {
  const Reads run = Made({.jobs = {{}, {}, {}}, .epochs = 1});
  for (std::size_t t = 0; t < run.reads.size(); ++t)
    EXPECT_EQ(run.reads[t].job, t % 3);
}

TEST(MakeReads, FasterJobsReadMoreUntilTheSlowestIsDone) {
  const Reads run = Made({.jobs = {{.rate = 0.5}, {.rate = 1.25}}, .epochs = 2});
  EXPECT_EQ(ReadsOf(run, 0), 20U);
  EXPECT_EQ(ReadsOf(run, 1), 50U);
}

TEST(MakeReads, JobsMayHavePassesOfOtherLengthsAndOtherRanks) {
  const auto orders = [](std::uint32_t job, PassNumber) {
    return std::vector<SampleId>(job == 0 ? 12 : 4, job);
  };
  // The second job needs longer for its four reads than the first for its twelve.
  const Pace pace{
      .jobs = {{.rate = 1}, {.rate = 0.25, .ranks = 2}}, .epochs = 3, .ranks = 3, .nodes = 2};
  const Reads run = *MakeReads(2, pace, orders);
  EXPECT_EQ(ReadsOf(run, 0), 48U);
  EXPECT_EQ(ReadsOf(run, 1), 12U) << "three epochs of the job whose epochs take longest";
  EXPECT_EQ(run.EndOfEpoch(0), 20U);
  std::vector<std::size_t> done(2);
  for (const Read& read : run.reads) {
    const std::size_t length = read.job == 0 ? 12 : 4;
    const std::size_t position = done[read.job]++ % length;
    EXPECT_EQ(read.sample, read.job);
    EXPECT_EQ(read.reader, position % (read.job == 0 ? 3 : 2) % 2);
    EXPECT_EQ(read.tenth, position * 10 / length);
  }
}

TEST(MakeReads, AJobMayStopInEachPass) {
  const Reads run = Made({.jobs = {{}, {.stops_at = 4}}, .epochs = 6});
  EXPECT_EQ(run.jobs[0].pass_reads, 10U);
  EXPECT_EQ(run.jobs[1].pass_reads, 4U);
  EXPECT_EQ(run.jobs[1].passes.size(), 15U);
  EXPECT_EQ(run.steady_from(), 20U) << "an epoch; its passes that make a whole one end before";
  EXPECT_EQ(Made({.jobs = {{.stops_at = 11}}}).jobs[0].pass_reads, 10U);
}

// Job 0 reads all of 100 samples, job 1 those from 20 on, each in another order in each pass.
Result<std::vector<SampleId>> Shuffled(std::uint32_t job, PassNumber pass) {
  const std::uint32_t size = job == 0 ? 100 : 80;
  std::vector<SampleId> order;
  for (std::uint32_t i = 0; i < size; ++i)
    order.push_back((i * 7 + pass * 31) % size + 100 - size);
  return order;
}

TEST(MakeReads, SteadyStateBeginsWhenNothingIsNew) {
  for (const double ahead : {0.0, 0.01, 0.25, 0.5, 0.99}) {
    const Reads run = *MakeReads(100, {.jobs = {{.ahead = ahead}}, .epochs = 3}, Shuffled);
    std::vector<bool> known(100);
    for (std::size_t t = 0; t < run.steady_from(); ++t)
      known[run.reads[t].sample] = true;
    EXPECT_EQ(std::count(known.begin(), known.end(), true), 100) << ahead;
    EXPECT_GE(run.steady_from(), 100U) << ahead;
    EXPECT_LE(run.steady_from(), ahead == 0 ? 100U : 200U) << ahead;
  }
}

TEST(MakeReads, AShortLoaderBesideALongOneDoesNotProlongTheColdStart) {
  // Ten reads of 80 in each of its passes, of which eight make a whole one.
  const Pace pace{.jobs = {{.rate = 10}, {.stops_at = 10}}, .epochs = 6};
  const Reads run = *MakeReads(100, pace, Shuffled);
  EXPECT_EQ(run.steady_from(), run.EndOfEpoch(0)) << "the first job has read all by then";
  Pace later = pace;
  later.jobs[0].ahead = 0.5;
  const Reads from_middle = *MakeReads(100, later, Shuffled);
  EXPECT_GT(from_middle.steady_from(), from_middle.EndOfEpoch(0));
  EXPECT_LT(from_middle.steady_from(), from_middle.EndOfEpoch(1));
}

TEST(MakeReads, RefusesAnOrderThatCannotBeMadeOrHasNothing) {
  const auto code = [](const MakeOrder& order) {
    return MakeReads(100, {.epochs = 3}, order).error().code();
  };
  EXPECT_EQ(code([](std::uint32_t, PassNumber) { return std::vector<SampleId>(); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code([](std::uint32_t job, PassNumber pass) -> Result<std::vector<SampleId>> {
              if (pass == 2) return Error(Code::kDataLoss, "gone");
              return Telling(job, pass);
            }),
            Code::kDataLoss);
}

TEST(MakeReads, AJobMayBeAheadAtTheStart) {
  const Reads run = Made({.jobs = {{.ahead = 0.3}}, .epochs = 1});
  EXPECT_EQ(run.reads.front().tenth, 3);
  EXPECT_EQ(run.reads.back().sample, 1U);
  EXPECT_EQ(run.reads.back().tenth, 2);
  EXPECT_EQ(run.reads.size(), 10U);
}

TEST(MakeReads, DriftChangesWhoReadsNextButNotHowMuchOnAverage) {
  const auto orders = [](std::uint32_t, PassNumber) { return std::vector<SampleId>(10'000, 0); };
  const Pace pace{.jobs = {{.rate = 1}, {.rate = 2}}, .epochs = 4, .drift = 0.1, .seed = 5};
  const Reads run = *MakeReads(1, pace, orders);
  EXPECT_TRUE(run.drifts);
  EXPECT_EQ(run.reads.size(), 120'000U);
  EXPECT_NEAR(static_cast<double>(ReadsOf(run, 0)), 40'000, 4'000);
}

TEST(MakeReads, RefusesWhatIsOutOfRange) {
  const auto code = [](const Pace& pace) { return MakeReads(100, pace, Telling).error().code(); };
  EXPECT_EQ(MakeReads(0, {}, Telling).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(code({.epochs = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.nodes = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.nodes = kMaxNodes + 1}), Code::kInvalidArgument);
  EXPECT_EQ(code({.ranks = 0}), Code::kInvalidArgument);
  EXPECT_EQ(code({.ranks = kMaxRanks + 1}), Code::kInvalidArgument);
  EXPECT_EQ(code({.jobs = {}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.jobs = std::vector<JobPace>(kMaxJobs + 1)}), Code::kInvalidArgument);
  EXPECT_EQ(code({.jobs = {{.rate = 0}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.jobs = {{.rate = 1}, {.rate = 1001}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.jobs = {{.ahead = 1}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.jobs = {{.ranks = kMaxRanks + 1}}}), Code::kInvalidArgument);
  EXPECT_EQ(code({.drift = 0.6}), Code::kInvalidArgument);
  const Status too_many = MakeReads(100, {.epochs = 100'000'000}, Telling).error();
  EXPECT_EQ(too_many.code(), Code::kInvalidArgument);
  EXPECT_NE(too_many.message().find("1000000000 reads"), std::string::npos) << too_many.message();
}

}  // namespace
}  // namespace optcache::simulation
