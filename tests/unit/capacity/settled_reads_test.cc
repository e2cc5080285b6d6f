#include "capacity/settled_reads.h"

#include <gtest/gtest.h>

namespace optcache::coordination {
namespace {

using std::chrono::seconds;

const MonotonicTime kBegin{seconds(1000)};

JobReads At(double rate) {
  return {.rate = rate, .measured = rate > 0};
}

double RateOfJob(const SettledReads& reads, const std::string& dataset, const std::string& job) {
  return reads.in_force().at(dataset).at(job).rate;
}

TEST(SettledReads, AJobThatComesCountsAtOnce) {
  SettledReads reads;
  EXPECT_TRUE(reads.Observe({{"a", {{"j", At(10)}}}}, kBegin));
  EXPECT_TRUE(reads.Observe({{"a", {{"j", At(10)}}}, {"b", {{"k", At(20)}}}}, kBegin));
  EXPECT_EQ(RateOfJob(reads, "b", "k"), 20);
}

TEST(SettledReads, ARateThatWobblesChangesNothing) {
  SettledReads reads;
  reads.Observe({{"a", {{"j", At(10)}}}}, kBegin);
  for (int second = 1; second < 1000; ++second)
    EXPECT_FALSE(reads.Observe({{"a", {{"j", At(10 + second % 7)}}}}, kBegin + seconds(second)));
  EXPECT_EQ(RateOfJob(reads, "a", "j"), 10);
}

TEST(SettledReads, ARateThatIsNotKnownIsTheMedianOfOthersUntilItIs) {
  SettledReads reads;
  ClusterReads seen = {{"a", {{"j", At(0)}}}};
  reads.Observe(seen, kBegin);
  EXPECT_EQ(RateOfJob(reads, "a", "j"), 1);
  EXPECT_FALSE(IsMeasured(reads.in_force().at("a")));
  seen["b"] = {{"k", At(10)}, {"l", At(30)}, {"m", At(50)}};
  EXPECT_TRUE(reads.Observe(seen, kBegin));
  EXPECT_EQ(RateOfJob(reads, "a", "j"), 30);
  seen["a"]["j"] = At(7);
  EXPECT_TRUE(reads.Observe(seen, kBegin));
  EXPECT_EQ(RateOfJob(reads, "a", "j"), 7);
}

TEST(SettledReads, RatesMayBeSettledAnewOnceInAWhile) {
  SettledReads reads;
  reads.Observe({{"a", {{"j", At(10)}}}}, kBegin);
  EXPECT_FALSE(reads.MayBeSettled(kBegin + kSettledFor - seconds(1)));
  EXPECT_TRUE(reads.MayBeSettled(kBegin + kSettledFor));
  reads.Observe({{"a", {{"j", At(90)}}}}, kBegin + kSettledFor);
  reads.Settle(kBegin + kSettledFor);
  EXPECT_EQ(RateOfJob(reads, "a", "j"), 90);
  EXPECT_FALSE(reads.MayBeSettled(kBegin + kSettledFor + seconds(1)));
}

TEST(SettledReads, AJobThatHasEndedLingers) {
  SettledReads reads;
  reads.Observe({{"a", {{"j", At(10)}}}}, kBegin);
  EXPECT_FALSE(reads.Observe({}, kBegin + kJobLingers));
  EXPECT_TRUE(reads.in_force().contains("a"));
  EXPECT_TRUE(reads.Observe({}, kBegin + kJobLingers + seconds(1)));
  EXPECT_TRUE(reads.in_force().empty());
}

TEST(SettledReads, AJobThatIsStartedAgainKeepsItsRate) {
  SettledReads reads;
  reads.Observe({{"a", {{"j", At(10)}}}}, kBegin);
  reads.Observe({}, kBegin + seconds(20));
  EXPECT_FALSE(reads.Observe({{"a", {{"j", At(0)}}}}, kBegin + seconds(40)));
  EXPECT_EQ(RateOfJob(reads, "a", "j"), 10);
}

TEST(SettledReads, WhoTakesOverGoesByWhatIsRemembered) {
  SettledReads reads;
  reads.Remember("a", 80);
  reads.Remember("b", 10);
  reads.Observe({{"a", {{"j", At(0)}, {"k", At(0)}}}, {"b", {{"l", At(0)}}}}, kBegin);
  EXPECT_EQ(RateOfJob(reads, "a", "j"), 40);
  EXPECT_EQ(RateOfJob(reads, "b", "l"), 10);
  // What it measures then is a rate like any other; a job that comes later is not remembered.
  EXPECT_FALSE(reads.Observe({{"a", {{"j", At(1)}, {"k", At(2)}}}, {"b", {{"l", At(9)}}}}, kBegin));
  reads.Observe({{"b", {{"l", At(9)}, {"m", At(3)}}}}, kBegin);
  EXPECT_EQ(RateOfJob(reads, "b", "m"), 3);
}

TEST(SettledReads, AnOrderThatIsNotKnownAnyMoreCountsAtOnce) {
  SettledReads reads;
  JobReads read = At(10);
  reads.Observe({{"a", {{"j", read}}}}, kBegin);
  read.order_known = false;
  EXPECT_TRUE(reads.Observe({{"a", {{"j", read}}}}, kBegin));
  EXPECT_FALSE(reads.in_force().at("a").at("j").order_known);
}

TEST(SettledReads, OnlyAGainThatIsWorthTheReadsIsTaken) {
  EXPECT_FALSE(IsWorthwhile(104, 100));
  EXPECT_TRUE(IsWorthwhile(106, 100));
  EXPECT_FALSE(IsWorthwhile(0, 0));
}

}  // namespace
}  // namespace optcache::coordination
