#include "base/callback_guard.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace optcache {
namespace {

TEST(CallbackGuard, CallsAsLongAsTheGuardIsThere) {
  std::optional<CallbackGuard> guard(std::in_place);
  int calls = 0;
  const std::function<void()> call = guard->Wrap([&] { ++calls; });
  call();
  call();
  EXPECT_EQ(calls, 2);
  guard.reset();
  call();
  EXPECT_EQ(calls, 2);
}

TEST(CallbackGuard, PassesArgumentsOn) {
  const CallbackGuard guard;
  std::unique_ptr<int> taken;
  std::string text;
  auto call = guard.Wrap([&](std::unique_ptr<int> number, std::string& out) {
    taken = std::move(number);
    out = "told";
  });
  call(std::make_unique<int>(7), text);
  EXPECT_EQ(*taken, 7);
  EXPECT_EQ(text, "told");
}

TEST(CallbackGuard, WhatIsWrappedMayChangeWhatItHolds) {
  const CallbackGuard guard;
  std::string last;
  auto call = guard.Wrap([&last, text = std::string()]() mutable { last = text += "."; });
  call();
  call();
  EXPECT_EQ(last, "..");
}

TEST(CallbackGuard, ACallMayEndTheGuard) {
  auto guard = std::make_unique<CallbackGuard>();
  int calls = 0;
  const std::function<void()> call = guard->Wrap([&] {
    guard.reset();
    ++calls;
  });
  call();
  call();
  EXPECT_EQ(calls, 1);
}

TEST(CallbackGuard, ACopyKnowsTheSameGuard) {
  auto guard = std::make_unique<CallbackGuard>();
  int calls = 0;
  auto first = guard->Wrap([&] { ++calls; });
  auto second = first;
  guard.reset();
  first();
  second();
  EXPECT_EQ(calls, 0);
}

TEST(CallbackGuard, ATokenSaysWhetherTheGuardIsThere) {
  auto guard = std::make_unique<CallbackGuard>();
  const CallbackGuard::Token token = guard->token();
  EXPECT_FALSE(token.expired());
  guard.reset();
  EXPECT_TRUE(token.expired());
}

}  // namespace
}  // namespace optcache
