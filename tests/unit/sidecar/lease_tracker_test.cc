#include "sidecar/fetch/lease_tracker.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

using wire::LeaseEvent;
using Leases = std::vector<std::pair<SampleId, wire::LeaseId>>;

TEST(LeaseTracker, TellsTheEndsOfManyLeasesInOneMessage) {
  FakeNode node;
  LeaseTracker book(node);
  book.Hold(7, 1, 100);
  book.Hold(7, 2, 200);
  book.End(7, 1, 100, LeaseEvent::kDone);
  book.End(7, 2, 200, LeaseEvent::kDone);
  book.Flush();
  const auto updates = node.All<wire::LeaseUpdate>();
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].leases, (Leases{{1, 100}, {2, 200}}));
  EXPECT_TRUE(book.empty());
}

TEST(LeaseTracker, RenewsWhatIsStillHeld) {
  FakeNode node;
  LeaseTracker book(node);
  book.Hold(7, 1, 100);
  book.Hold(7, 2, 200);
  book.Hold(7, 3, 300);
  book.Spend(7, 2, 200);
  book.End(7, 3, 300, LeaseEvent::kFailed);
  book.Renew();
  const auto updates = node.All<wire::LeaseUpdate>();
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].event, LeaseEvent::kRenew);
  EXPECT_EQ(updates[0].leases, (Leases{{1, 100}}));
}

TEST(LeaseTracker, NoLeaseAsksForNothing) {
  FakeNode node;
  LeaseTracker book(node);
  book.Hold(7, 1, 0);
  book.End(7, 1, 0, LeaseEvent::kDone);
  book.Flush();
  book.Renew();
  EXPECT_TRUE(node.sent.empty());
}

// Two ranks read one sample, and only one of them was granted the lease.
TEST(LeaseTracker, AReadWithoutTheLeaseDoesNotEndIt) {
  FakeNode node;
  LeaseTracker book(node);
  book.Hold(7, 1, 100);
  book.End(7, 1, 0, LeaseEvent::kFailed);
  book.Spend(7, 1, 0);
  book.End(7, 1, 99, LeaseEvent::kDone);
  book.Renew();
  const auto updates = node.All<wire::LeaseUpdate>();
  ASSERT_EQ(updates.size(), 1U);
  EXPECT_EQ(updates[0].leases, (Leases{{1, 100}}));
}

TEST(LeaseTracker, ForgetsAllWithTheNode) {
  FakeNode node;
  LeaseTracker book(node);
  book.Hold(7, 1, 100);
  book.End(7, 2, 200, LeaseEvent::kDone);
  book.Clear();
  book.Flush();
  book.Renew();
  EXPECT_TRUE(node.sent.empty());
}

}  // namespace
}  // namespace optcache::sidecar
