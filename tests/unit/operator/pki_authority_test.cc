#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/pki/authority.h"
#include "operator/pki/objects.h"
#include "operator/pki/secret_content.h"
#include "pki/pki.h"

namespace optcache::authority {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

constexpr UnixSeconds kNow = 1'800'000'000;
constexpr std::int64_t kDay = 24 * 3600;

Decision Decided(UnixSeconds now, const SecretData& secret,
                 const AuthoritySettings& settings = {}) {
  auto decision = Decide(now, secret, settings);
  EXPECT_TRUE(decision) << decision.error().message();
  return decision ? *std::move(decision) : Decision{};
}

SecretData Fresh(UnixSeconds now = kNow) {
  return Decided(now, {}).write.value_or(SecretData{});
}

Status Trusts(const Decision& decision, UnixSeconds now) {
  return pki::Verify(decision.leaf.chain, decision.bundle, now, pki::Usages{.server = true});
}

std::vector<std::string> Reasons(const Decision& decision) {
  std::vector<std::string> reasons;
  for (const Notice& notice : decision.notices)
    reasons.push_back(notice.reason);
  return reasons;
}

TEST(Authority, BeginsWithAnEmptySecret) {
  const Decision decision = Decided(kNow, {{"ca.crt", ""}});
  ASSERT_TRUE(decision.write);
  EXPECT_TRUE(Trusts(decision, kNow).ok());
  EXPECT_THAT(Reasons(decision), ElementsAre("AuthorityCreated", "CertificateIssued"));
  for (const Notice& notice : decision.notices)
    EXPECT_FALSE(notice.warning) << notice.message;
}

TEST(Authority, IssuesTheOperatorsNames) {
  const AuthoritySettings settings{.name = "oc", .system_namespace = "cache"};
  const Decision decision = Decided(kNow, {}, settings);
  const auto leaf = pki::Inspect(decision.leaf.chain);
  ASSERT_TRUE(leaf);
  EXPECT_THAT(leaf->dns_names, ElementsAre("oc-operator.cache.svc", "optcache-operator"));
  EXPECT_FALSE(leaf->usages.client);
}

TEST(Authority, DoesNothingWhileAllIsGood) {
  const SecretData secret = Fresh();
  const Decision decision = Decided(kNow + kDay, secret);
  EXPECT_FALSE(decision.write);
  EXPECT_THAT(decision.notices, testing::IsEmpty());
  EXPECT_EQ(decision.leaf.chain, secret.at("tls.crt"));
  EXPECT_EQ(decision.bundle, secret.at("ca.crt"));
}

TEST(Authority, RenewsTheLeafAfterTwoThirds) {
  const SecretData secret = Fresh();
  const UnixSeconds due = Decided(kNow, secret).next_check;
  EXPECT_NEAR(static_cast<double>(due - kNow), 7.0 * kDay * 2 / 3, 5);
  EXPECT_FALSE(Decided(due - 1, secret).write);
  const Decision decision = Decided(due, secret);
  ASSERT_TRUE(decision.write);
  EXPECT_NE(decision.leaf.chain, secret.at("tls.crt"));
  EXPECT_EQ(decision.bundle, secret.at("ca.crt"));
  EXPECT_FALSE(decision.notices.front().warning);
}

TEST(Authority, RenewsALeafThatWasMadeForLongerThanIsAskedNow) {
  const SecretData secret = Fresh();
  const AuthoritySettings shorter{.leaf_lifetime_seconds = 600};
  const UnixSeconds due = Decided(kNow, secret, shorter).next_check;
  EXPECT_EQ(due - kNow, 400);
  EXPECT_FALSE(Decided(due - 1, secret, shorter).write);
  EXPECT_TRUE(Decided(due, secret, shorter).write);
}

TEST(Authority, AnnouncesTheNextCaBeforeItSigns) {
  const AuthoritySettings settings;
  SecretData secret = Fresh();
  const UnixSeconds begin = kNow + settings.ca_lifetime_seconds / 3 * 2 + 10;
  Decision decision = Decided(begin, secret);
  EXPECT_THAT(Reasons(decision), testing::Contains("AuthorityRenewalBegun"));
  EXPECT_EQ(pki::SplitBundle(decision.bundle)->size(), 2U);
  EXPECT_TRUE(pki::Verify(decision.leaf.chain, secret.at("ca.crt"), begin, {.server = true}).ok());
  secret = *decision.write;
  EXPECT_EQ(Decided(begin, secret).next_check, begin + settings.propagation_seconds);
  decision = Decided(begin + settings.propagation_seconds, secret);
  EXPECT_THAT(Reasons(decision), testing::Contains("AuthorityRenewed"));
  EXPECT_EQ(pki::SplitBundle(decision.bundle)->size(), 2U);
  EXPECT_EQ(pki::SplitBundle(decision.bundle)->front(), secret.at("next-ca.crt"));
}

TEST(Authority, ForgetsAnOldCaWhenItHasExpired) {
  const AuthoritySettings settings;
  SecretData secret = Fresh();
  const UnixSeconds begin = kNow + settings.ca_lifetime_seconds / 3 * 2 + 10;
  secret = *Decided(begin, secret).write;
  secret = *Decided(begin + settings.propagation_seconds, secret).write;
  const Decision decision = Decided(kNow + settings.ca_lifetime_seconds + 10, secret);
  EXPECT_EQ(pki::SplitBundle(decision.bundle)->size(), 1U);
}

TEST(Authority, RepairsWhatIsBroken) {
  const SecretData good = Fresh();
  const std::string other_key = *pki::MakeKey();
  for (const char* key : {"ca.crt", "ca.key", "tls.crt", "tls.key"}) {
    for (const std::string& bad : {std::string(), std::string("-----BEGIN CERTIFICATE-----\nx"),
                                   other_key, std::string(1U << 20U, 'x')}) {
      SecretData secret = good;
      secret[key] = bad;
      const Decision decision = Decided(kNow + 10, secret);
      ASSERT_TRUE(decision.write) << key;
      EXPECT_TRUE(Trusts(decision, kNow + 10).ok()) << key;
      ASSERT_FALSE(decision.notices.empty()) << key;
      EXPECT_TRUE(decision.notices.front().warning) << key;
      EXPECT_FALSE(Decided(kNow + 10, *decision.write).write) << key;
    }
  }
}

TEST(Authority, KeepsTrustInAnAuthorityWhoseKeyIsLost) {
  SecretData secret = Fresh();
  const std::string old = pki::SplitBundle(secret.at("ca.crt"))->front();
  secret["ca.key"] = "";
  const Decision decision = Decided(kNow + 10, secret);
  EXPECT_THAT(*pki::SplitBundle(decision.bundle), testing::Contains(old));
  EXPECT_EQ(decision.leaf.chain, secret.at("tls.crt"));
}

TEST(Authority, TakesNoForeignCaIntoTheBundle) {
  SecretData secret = Fresh();
  const std::string foreign = *pki::MakeCa(*pki::MakeKey(), "somebody else",
                                           {.not_before = kNow, .not_after = kNow + kDay});
  secret["ca.crt"] += foreign;
  const Decision decision = Decided(kNow + 10, secret);
  EXPECT_EQ(pki::SplitBundle(decision.bundle)->size(), 1U);
}

TEST(Authority, ReplacesAnExpiredOne) {
  const Decision decision = Decided(kNow + 400 * kDay, Fresh());
  EXPECT_TRUE(Trusts(decision, kNow + 400 * kDay).ok());
  EXPECT_THAT(Reasons(decision), ElementsAre("AuthorityReplaced", "CertificateIssued"));
}

TEST(Authority, FollowsAChangeOfName) {
  const Decision decision = Decided(kNow + 10, Fresh(), {.name = "other"});
  EXPECT_EQ(pki::Inspect(decision.leaf.chain)->dns_names.front(), "other-operator.optcache.svc");
}

TEST(Authority, LetsAReplicaServeWhatIsThere) {
  const SecretData secret = Fresh();
  const auto leaf = ServingLeaf(kNow, secret);
  ASSERT_TRUE(leaf);
  EXPECT_EQ(leaf->chain, secret.at("tls.crt"));
  EXPECT_EQ(ServingLeaf(kNow, {}).error().code(), Code::kUnavailable);
  EXPECT_EQ(ServingLeaf(kNow + 8 * kDay, secret).error().code(), Code::kUnavailable);
}

TEST(Authority, SignsNodes) {
  const SecretData secret = Fresh();
  const std::string request = *pki::MakeRequest(*pki::MakeKey(), {"optcache-operator"});
  const auto chain = SignNode(kNow, secret, {}, request, "optcache-node-7xk2p");
  ASSERT_TRUE(chain) << chain.error().message();
  EXPECT_TRUE(
      pki::Verify(*chain, secret.at("ca.crt"), kNow, {.server = true, .client = true}).ok());
  const auto leaf = pki::Inspect(*chain);
  EXPECT_THAT(leaf->dns_names, ElementsAre("optcache-node", "optcache-node-7xk2p"));
  EXPECT_EQ(leaf->validity.not_after, kNow + kDay);
}

TEST(Authority, SignsNoNonsenseAndNothingWithoutAKey) {
  EXPECT_EQ(SignNode(kNow, Fresh(), {}, "hello", "a").error().code(), Code::kInvalidArgument);
  const std::string request = *pki::MakeRequest(*pki::MakeKey(), {"x"});
  EXPECT_EQ(SignNode(kNow, {}, {}, request, "a").error().code(), Code::kUnavailable);
}

TEST(Authority, NoLeafOutlivesItsCa) {
  const SecretData secret = Fresh();
  const UnixSeconds late = kNow + 364 * kDay + kDay / 2;
  const std::string request = *pki::MakeRequest(*pki::MakeKey(), {"x"});
  EXPECT_EQ(pki::Inspect(*SignNode(late, secret, {}, request, "a"))->validity.not_after,
            kNow + 365 * kDay);
}

TEST(Authority, ReportsFromWhenAndUntilWhenWhatIsValid) {
  std::map<std::string, UnixSeconds> begins;
  std::map<std::string, UnixSeconds> ends;
  VisitValidities(
      Fresh(), [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
        auto& times = name == "optcache_certificate_expiry_timestamp_seconds" ? ends : begins;
        times[labels[0].second] = static_cast<UnixSeconds>(value) - kNow;
      });
  EXPECT_THAT(ends, ElementsAre(Pair("ca", 365 * kDay), Pair("operator", 7 * kDay)));
  constexpr UnixSeconds kSkew = 300;  // clocks that are behind take it, too
  EXPECT_THAT(begins, ElementsAre(Pair("ca", -kSkew), Pair("operator", -kSkew)));
}

TEST(Authority, ChecksItsSettings) {
  EXPECT_TRUE(CheckSettings({}).ok());
  EXPECT_FALSE(CheckSettings({.leaf_lifetime_seconds = 59}).ok());
  EXPECT_FALSE(CheckSettings({.leaf_lifetime_seconds = 365 * kDay}).ok());
  EXPECT_FALSE(CheckSettings({.node_leaf_lifetime_seconds = 0}).ok());
  EXPECT_FALSE(CheckSettings({.propagation_seconds = -1}).ok());
  EXPECT_THAT(CheckSettings({.ca_lifetime_seconds = 101 * 366 * kDay}).message(),
              HasSubstr("100 years"));
}

TEST(AuthorityObjects, SurviveTheWayThroughTheApi) {
  const SecretData secret = Fresh();
  const auto object = BuildSecret({.name = "oc", .system_namespace = "cache"}, secret);
  EXPECT_EQ(object["metadata"]["name"], "oc-pki");
  EXPECT_EQ(object["metadata"]["namespace"], "cache");
  EXPECT_EQ(ReadSecret(object), secret);
}

TEST(AuthorityObjects, ReadWhatIsNoSecretAsEmpty) {
  for (const char* text :
       {"5", "{}", R"({"data":[]})", R"({"data":{"ca.crt":"?"}})", R"({"data":{"ca.crt":5}})"}) {
    EXPECT_TRUE(ReadSecret(nlohmann::json::parse(text)).empty()) << text;
  }
}

TEST(AuthorityObjects, TouchNothingButTheCaBundle) {
  const auto object = BuildCaBundle("PEM", {"a.optcache.io", "b.optcache.io"});
  EXPECT_EQ(object["metadata"]["name"], "optcache-injector");
  EXPECT_EQ(object["webhooks"].dump(),
            R"([{"clientConfig":{"caBundle":"UEVN"},"name":"a.optcache.io"},)"
            R"({"clientConfig":{"caBundle":"UEVN"},"name":"b.optcache.io"}])");
}

TEST(AuthorityObjects, PublishTheBundleByNamespace) {
  const auto object = BuildBundle("vision", "PEM");
  EXPECT_EQ(object["metadata"]["name"], "optcache-ca");
  EXPECT_EQ(object["metadata"]["namespace"], "vision");
  EXPECT_EQ(object["data"]["ca.crt"], "PEM");
}

}  // namespace
}  // namespace optcache::authority
