#include "cache-node/trust/token_check.h"

#include <deque>

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace optcache::node {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Keeps what it is asked until the test answers.
class FakeReviewer final : public TokenReviewer {
 public:
  void Review(const std::string& token, Done done) override {
    asked.push_back(token);
    waiting.push_back(std::move(done));
  }
  void Answer(const Result<ReviewedToken>& answer) {
    const Done done = std::move(waiting.front());
    waiting.pop_front();
    done(answer);
  }
  void AnswerGood(const std::string& ns = "vision") {
    Answer(ReviewedToken{.username = "system:serviceaccount:" + ns + ":default",
                         .extra = {{"authentication.kubernetes.io/pod-name", {"train-0"}},
                                   {"authentication.kubernetes.io/pod-uid", {"1234"}},
                                   {"authentication.kubernetes.io/node-name", {"machine-7"}}}});
  }

  std::vector<std::string> asked;
  std::deque<Done> waiting;
};

class TokenCheckTest : public testing::Test {
 protected:
  void Check(const std::string& token, const std::string& address = "10.0.0.1:4001") {
    check_.Check(token, {.address = address},
                 [this](const Result<Caller>& caller, MonotonicTime until) {
                   answers_.push_back(caller ? NameOf(*caller)
                                             : std::string(CodeName(caller.error().code())));
                   until_ = until;
                 });
  }
  std::string Last() const { return answers_.empty() ? "" : answers_.back(); }

  ManualClock clock_;
  FakeReviewer reviewer_;
  TokenCheck check_{
      reviewer_,
      clock_,
      {.remembered = 3, .reviews = 4, .waiting_per_review = 2, .waiting_per_peer = 3}};
  std::vector<std::string> answers_;
  MonotonicTime until_;  // the last answer holds
};

// {"exp":1800000031}, thirty seconds from the test's now.
constexpr const char* kExpiring = "eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjE4MDAwMDAwMzF9.c2ln";

TEST_F(TokenCheckTest, IsThePodThatTheApiServerNames) {
  std::optional<Caller> caller;
  check_.Check("t", {.address = "10.0.0.1:4001"},
               [&](const Result<Caller>& who, MonotonicTime) { caller = *who; });
  reviewer_.AnswerGood();
  EXPECT_EQ(caller, (Caller{.name_space = "vision",
                            .service_account = "default",
                            .pod = "train-0",
                            .pod_uid = "1234",
                            .machine = "machine-7"}));
}

TEST_F(TokenCheckTest, AsksOnceForManyAtATime) {
  Check("t");
  Check("t");
  EXPECT_EQ(reviewer_.asked, std::vector<std::string>{"t"});
  reviewer_.AnswerGood();
  EXPECT_EQ(answers_, (std::vector<std::string>{"vision/train-0", "vision/train-0"}));
}

TEST_F(TokenCheckTest, RemembersForFiveMinutes) {
  Check("t");
  reviewer_.AnswerGood();
  clock_.Advance(minutes(5) - seconds(1));
  Check("t");
  EXPECT_EQ(Last(), "vision/train-0");
  EXPECT_EQ(reviewer_.asked.size(), 1U);
  clock_.Advance(seconds(1));
  Check("t");
  EXPECT_EQ(reviewer_.asked.size(), 2U);
}

TEST_F(TokenCheckTest, RemembersNoLongerThanTheTokenLives) {
  Check(kExpiring);
  reviewer_.AnswerGood();
  clock_.Advance(seconds(29));
  Check(kExpiring);
  EXPECT_EQ(reviewer_.asked.size(), 1U);
  clock_.Advance(seconds(1));
  Check(kExpiring);
  EXPECT_EQ(reviewer_.asked.size(), 2U);
  reviewer_.Answer(Error(Code::kPermissionDenied, "expired"));
  EXPECT_EQ(Last(), "permission_denied");
}

TEST_F(TokenCheckTest, SaysUntilWhenAnAnswerHolds) {
  const MonotonicTime begin = clock_.Now();
  Check("t");
  reviewer_.AnswerGood();
  EXPECT_EQ(until_, begin + minutes(5));
  clock_.Advance(minutes(4));
  Check("t");
  EXPECT_EQ(until_, begin + minutes(5)) << "from memory, no longer";
  Check(kExpiring, "10.0.0.2:1");
  reviewer_.AnswerGood();
  EXPECT_LT(until_, clock_.Now() + seconds(31));
}

TEST_F(TokenCheckTest, ABadTokenIsRememberedForAMoment) {
  Check("bad");
  reviewer_.Answer(Error(Code::kPermissionDenied, "unknown"));
  Check("bad");
  EXPECT_EQ(answers_, (std::vector<std::string>{"permission_denied", "permission_denied"}));
  EXPECT_EQ(reviewer_.asked.size(), 1U);
  clock_.Advance(seconds(10));
  Check("bad");
  EXPECT_EQ(reviewer_.asked.size(), 2U);
}

TEST_F(TokenCheckTest, AnApiServerThatIsAwayIsAskedAgainAtOnce) {
  Check("t");
  reviewer_.Answer(Error(Code::kUnavailable, "connection refused"));
  EXPECT_EQ(Last(), "unavailable");
  Check("t");
  reviewer_.AnswerGood();
  EXPECT_EQ(Last(), "vision/train-0");
}

TEST_F(TokenCheckTest, AnotherTokenIsAnotherQuestion) {
  Check("t");
  reviewer_.AnswerGood();
  Check("u");
  EXPECT_EQ(reviewer_.asked.size(), 2U);
}

TEST_F(TokenCheckTest, WhatWaitsHasABound) {
  for (int i = 0; i < 3; ++i)
    Check("t", "10.0.0.1:1");
  EXPECT_EQ(answers_, std::vector<std::string>{"resource_exhausted"});
  for (const char* token : {"u", "v", "w"})
    Check(token, "10.0.0.2:1");
  Check("x", "10.0.0.3:1");
  EXPECT_EQ(reviewer_.asked, (std::vector<std::string>{"t", "u", "v", "w"}));
  EXPECT_EQ(answers_, (std::vector<std::string>{"resource_exhausted", "resource_exhausted"}));
}

TEST_F(TokenCheckTest, APeerThatShowsManyTokensLeavesRoomForOthers) {
  for (int i = 0; i < 100; ++i)
    Check("garbage" + std::to_string(i), "10.0.0.1:" + std::to_string(4000 + i));
  EXPECT_EQ(reviewer_.asked.size(), 3U);
  EXPECT_EQ(answers_, std::vector<std::string>(97, "resource_exhausted"));
  Check("t", "10.0.0.2:4000");
  EXPECT_EQ(reviewer_.asked.back(), "t");
  // What was answered makes room for the next of the same peer.
  reviewer_.Answer(Error(Code::kPermissionDenied, "unknown"));
  Check("garbage", "10.0.0.1:4100");
  EXPECT_EQ(reviewer_.asked.back(), "garbage");
  EXPECT_EQ(answers_.size(), 98U);
}

TEST_F(TokenCheckTest, ManyBadTokensDriveOutNoGoodOne) {
  Check("good");
  reviewer_.AnswerGood();
  for (int i = 0; i < 20; ++i) {
    Check("bad" + std::to_string(i));
    reviewer_.Answer(Error(Code::kPermissionDenied, "unknown"));
  }
  const std::size_t asked = reviewer_.asked.size();
  Check("good");
  EXPECT_EQ(Last(), "vision/train-0");
  EXPECT_EQ(reviewer_.asked.size(), asked);
}

TEST_F(TokenCheckTest, NoTokenIsABadToken) {
  Check("");
  EXPECT_EQ(Last(), "permission_denied");
  EXPECT_TRUE(reviewer_.asked.empty());
}

TEST(CallerOf, APersonIsNoPod) {
  for (const char* user : {"kubernetes-admin", "system:node:machine-7",
                           "system:serviceaccount:", "system:serviceaccount:vision",
                           "system:serviceaccount::default", "system:serviceaccount:vision:"}) {
    const auto caller = CallerOf({.username = user});
    ASSERT_FALSE(caller.has_value()) << user;
    EXPECT_EQ(caller.error().code(), Code::kPermissionDenied);
  }
}

TEST(ExpiryOf, ReadsTheClaimAndNothingElse) {
  EXPECT_EQ(ExpiryOf(kExpiring), 1'800'000'031.0);
  for (const char* token : {"", "opaque", "a.b", "a.!!.c", "a.bm90IGpzb24.c", "a.W10.c", "a.e30.c",
                            "a.eyJleHAiOiJ4In0.c", "..", "."}) {
    EXPECT_EQ(ExpiryOf(token), std::nullopt) << token;
  }
}

}  // namespace
}  // namespace optcache::node
