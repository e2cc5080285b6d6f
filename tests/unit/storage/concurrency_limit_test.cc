#include "storage/concurrency_limit.h"

#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "support/seeds.h"

namespace optcache::storage {
namespace {

// A round trip: as many requests as may run start, then all end so. How many there were.
unsigned RoundTrip(ConcurrencyLimit& limit, ConcurrencyLimit::End end) {
  std::vector<ConcurrencyLimit::Ticket> tickets;
  while (limit.MayStart())
    tickets.push_back(limit.OnStart());
  for (const auto ticket : tickets)
    limit.OnEnd(ticket, end);
  return static_cast<unsigned>(tickets.size());
}

TEST(ConcurrencyLimit, BeginsWithAllThatIsAllowed) {
  ConcurrencyLimit limit({.max = 8});
  EXPECT_EQ(RoundTrip(limit, ConcurrencyLimit::End::kAnswered), 8U);
  EXPECT_EQ(limit.limit(), 8U);
  EXPECT_EQ(limit.running(), 0U);
}

TEST(ConcurrencyLimit, DecreasesOnceARoundTrip) {
  ConcurrencyLimit limit({.max = 10, .decrease_factor = 0.5});
  EXPECT_EQ(RoundTrip(limit, ConcurrencyLimit::End::kOverloaded), 10U);
  EXPECT_EQ(limit.limit(), 5U);
  EXPECT_EQ(limit.decreases(), 1U);
  EXPECT_EQ(RoundTrip(limit, ConcurrencyLimit::End::kOverloaded), 5U);
  EXPECT_EQ(limit.limit(), 2U);
  EXPECT_EQ(limit.decreases(), 2U);
}

TEST(ConcurrencyLimit, NeverFallsBelowOne) {
  ConcurrencyLimit limit({.max = 10, .decrease_factor = 0.5});
  for (int i = 0; i < 20; ++i)
    RoundTrip(limit, ConcurrencyLimit::End::kOverloaded);
  EXPECT_EQ(limit.limit(), 1U);
  EXPECT_TRUE(limit.MayStart());
}

TEST(ConcurrencyLimit, GrowsByAboutOneARoundTripUpToTheMaximum) {
  ConcurrencyLimit limit({.max = 10, .decrease_factor = 0.5});
  RoundTrip(limit, ConcurrencyLimit::End::kOverloaded);
  unsigned before = limit.limit();
  for (int i = 0; i < 20; ++i) {
    RoundTrip(limit, ConcurrencyLimit::End::kAnswered);
    EXPECT_LE(limit.limit(), before + 1);
    before = limit.limit();
  }
  EXPECT_EQ(limit.limit(), 10U);
}

TEST(ConcurrencyLimit, DoesNotGrowUnlessItIsUsed) {
  ConcurrencyLimit limit({.max = 10, .decrease_factor = 0.5});
  RoundTrip(limit, ConcurrencyLimit::End::kOverloaded);
  for (int i = 0; i < 100; ++i)
    limit.OnEnd(limit.OnStart(), ConcurrencyLimit::End::kAnswered);
  EXPECT_EQ(limit.limit(), 5U);
}

TEST(ConcurrencyLimit, WhatWasGivenUpChangesNothing) {
  ConcurrencyLimit limit({.max = 10});
  EXPECT_EQ(RoundTrip(limit, ConcurrencyLimit::End::kUnknown), 10U);
  EXPECT_EQ(limit.limit(), 10U);
  EXPECT_EQ(limit.decreases(), 0U);
}

// A store that carries `capacity` requests at a time and refuses more at once, and clients that
// send all they may: requests end in virtual time, each after its own while.
TEST(ConcurrencyLimit, SettlesNearWhatTheStoreCarries) {
  const std::uint64_t seed = TestSeed(413);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto capacity = static_cast<unsigned>(4 + random.Below(40));
    const int clients = 1 + static_cast<int>(random.Below(2));
    std::vector<ConcurrencyLimit> limits(static_cast<size_t>(clients),
                                         ConcurrencyLimit({.max = 64, .decrease_factor = 0.7}));
    struct Request {
      ConcurrencyLimit* limit;
      ConcurrencyLimit::Ticket ticket;
      ConcurrencyLimit::End end;
    };
    std::multimap<double, Request> ends;
    double now = 0;
    unsigned carried = 0;
    double busy = 0;
    std::vector<std::uint64_t> answered(limits.size());
    const double warm_up = 200;
    while (now < 1000) {
      for (ConcurrencyLimit& limit : limits) {
        while (limit.MayStart()) {
          const bool takes = carried < capacity;
          carried += takes ? 1 : 0;
          const double lasts = takes ? 0.8 + 0.4 * random.Unit() : 0.2;
          ends.emplace(now + lasts, Request{&limit, limit.OnStart(),
                                            takes ? ConcurrencyLimit::End::kAnswered
                                                  : ConcurrencyLimit::End::kOverloaded});
        }
      }
      const auto first = ends.begin();
      if (now >= warm_up) busy += (first->first - now) * carried;
      now = first->first;
      const Request request = first->second;
      ends.erase(first);
      if (request.end == ConcurrencyLimit::End::kAnswered) {
        --carried;
        if (now >= warm_up) ++answered[static_cast<size_t>(request.limit - limits.data())];
      }
      request.limit->OnEnd(request.ticket, request.end);
      ASSERT_GE(request.limit->limit(), 1U);
      ASSERT_LE(request.limit->limit(), 64U);
    }
    EXPECT_GE(busy / (now - warm_up), 0.7 * capacity) << "the store stands idle";
    if (clients == 2) {
      const double all = static_cast<double>(answered[0] + answered[1]);
      EXPECT_GE(static_cast<double>(answered[0]) / all, 0.35) << "unfair";
      EXPECT_LE(static_cast<double>(answered[0]) / all, 0.65) << "unfair";
    }
  }
}

}  // namespace
}  // namespace optcache::storage
