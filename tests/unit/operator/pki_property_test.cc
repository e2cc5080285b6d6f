// The promise of authority.h: who has a bundle that is not older than the propagation can check
// what is served, and no certificate of a node is ever refused before it expires.

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "operator/pki/authority.h"
#include "pki/pki.h"
#include "support/seeds.h"

namespace optcache::authority {
namespace {

struct Published {
  UnixSeconds at = 0;
  std::string bundle;
};

// Everything that a client may still hold at `now`.
std::vector<std::string> BundlesInUse(const std::vector<Published>& history, UnixSeconds now,
                                      std::int64_t propagation) {
  std::vector<std::string> bundles;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const bool replaced_long_ago = i + 1 < history.size() && history[i + 1].at <= now - propagation;
    if (!replaced_long_ago) bundles.push_back(history[i].bundle);
  }
  return bundles;
}

constexpr std::size_t kNodes = 3;

std::int64_t Between(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.Below(static_cast<std::uint64_t>(high - low) + 1));
}

struct NodeLeaf {
  std::string chain;
  UnixSeconds expires = 0;
};

// A leader that is called at `next_check`, somewhat earlier or somewhat later.
void Live(Random& random) {
  AuthoritySettings settings;
  settings.ca_lifetime_seconds = Between(random, 1, 20) * 3600;
  settings.leaf_lifetime_seconds = settings.ca_lifetime_seconds / Between(random, 2, 16);
  settings.node_leaf_lifetime_seconds = settings.ca_lifetime_seconds / 4;
  settings.propagation_seconds = settings.ca_lifetime_seconds / 10;
  ASSERT_TRUE(CheckSettings(settings).ok());
  const std::string request = *pki::MakeRequest(*pki::MakeKey(), {"x"});

  SecretData secret;
  std::vector<Published> history;
  std::vector<NodeLeaf> nodes;
  UnixSeconds now = 1'800'000'000;
  const UnixSeconds end = now + 4 * settings.ca_lifetime_seconds;
  while (now < end) {
    const auto decision = Decide(now, secret, settings);
    ASSERT_TRUE(decision) << decision.error().message();
    if (decision->write) secret = *decision->write;
    if (history.empty() || history.back().bundle != decision->bundle)
      history.push_back({now, decision->bundle});
    for (const std::string& bundle : BundlesInUse(history, now, settings.propagation_seconds)) {
      const Status status =
          pki::Verify(decision->leaf.chain, bundle, now, pki::Usages{.server = true});
      ASSERT_TRUE(status.ok()) << "after " << now - 1'800'000'000 << " s: " << status.message();
    }
    const auto node = SignNode(now, secret, settings, request, "node-a");
    ASSERT_TRUE(node) << node.error().message();
    nodes.push_back({*node, pki::Inspect(*node)->validity.not_after});
    if (nodes.size() > kNodes) nodes.erase(nodes.begin());
    std::erase_if(nodes, [now](const NodeLeaf& leaf) { return leaf.expires <= now; });
    for (const NodeLeaf& leaf : nodes) {
      for (const std::string& bundle : BundlesInUse(history, now, settings.propagation_seconds))
        ASSERT_TRUE(pki::Verify(leaf.chain, bundle, now, {.server = true, .client = true}).ok());
    }
    const std::int64_t late_at_most =
        std::min(settings.leaf_lifetime_seconds / 6, settings.ca_lifetime_seconds / 16);
    const bool early = random.Below(3) == 0;
    now = early ? now + 1 + (decision->next_check - now) / 2
                : decision->next_check + Between(random, 0, late_at_most);
  }
}

TEST(AuthorityProperty, WhoHasARecentBundleCanAlwaysVerify) {
  const std::uint64_t seed = TestSeed(2718);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  for (int life = 0; life < 2 && !testing::Test::HasFatalFailure(); ++life)
    Live(random);
}

// Whatever time it is, and whatever became of the Secret: an answer that fits together.
TEST(AuthorityProperty, AnyTimeAndAnySecretGiveABundleThatVerifiesTheLeaf) {
  const std::uint64_t seed = TestSeed(1618);
  SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
  Random random(seed);
  const AuthoritySettings settings{.ca_lifetime_seconds = 7200,
                                   .leaf_lifetime_seconds = 600,
                                   .node_leaf_lifetime_seconds = 600,
                                   .propagation_seconds = 300};
  SecretData secret;
  for (int step = 0; step < 60; ++step) {
    const UnixSeconds now = 1'800'000'000 + Between(random, 0, 30'000);
    const auto decision = Decide(now, secret, settings);
    ASSERT_TRUE(decision) << decision.error().message();
    ASSERT_TRUE(pki::Verify(decision->leaf.chain, decision->bundle, now, {.server = true}).ok());
    if (decision->write) secret = *decision->write;
    ASSERT_FALSE(Decide(now, secret, settings)->write) << "it is not content with its own work";
    if (random.Below(4) != 0) continue;
    auto victim = secret.begin();
    std::advance(victim, static_cast<std::ptrdiff_t>(random.Below(secret.size())));
    victim->second.resize(random.Below(victim->second.size() + 1));
  }
}

}  // namespace
}  // namespace optcache::authority
