#include <gtest/gtest.h>

#include "unit/pki/authority.h"

namespace optcache::pki {
namespace {

constexpr Usages kServer = {.server = true};
constexpr Usages kClient = {.client = true};

TEST(Bundles, SplitIntoWhatTheyWereJoinedOf) {
  const std::vector<std::string> all = {Authority().certificate, Authority().certificate};
  EXPECT_EQ(Must(SplitBundle(JoinBundle(all))), all);
}

TEST(Bundles, NameNobodyTwice) {
  const Authority one;
  const Authority other;
  const std::string joined = JoinBundle({one.certificate, other.certificate, one.certificate});
  EXPECT_EQ(joined, one.certificate + other.certificate);
}

TEST(Bundles, MayBeEmptyAndHaveTextAround) {
  const Authority ca;
  EXPECT_TRUE(Must(SplitBundle("")).empty());
  EXPECT_TRUE(Must(SplitBundle("nothing here\n")).empty());
  EXPECT_EQ(Must(SplitBundle("# ours\n" + ca.certificate + "# end\n")),
            std::vector<std::string>{ca.certificate});
  EXPECT_EQ(Must(SplitBundle(ca.key + ca.certificate)), std::vector<std::string>{ca.certificate});
}

TEST(Bundles, ABrokenOneIsAnError) {
  std::string broken = Authority().certificate;
  broken.erase(100, 4);
  const auto split = SplitBundle(Authority().certificate + broken);
  ASSERT_FALSE(split.has_value());
  EXPECT_EQ(split.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(split.error().message(), "certificate number 2 of the bundle is broken");
}

TEST(Bundles, HoldSoManyAndNoMore) {
  const Authority ca;
  std::string bundle;
  for (std::size_t i = 0; i < kMaxCertificates; ++i)
    bundle += ca.certificate;
  EXPECT_EQ(Must(SplitBundle(bundle)).size(), kMaxCertificates);
  const auto split = SplitBundle(bundle + ca.certificate);
  ASSERT_FALSE(split.has_value());
  EXPECT_EQ(split.error().message(), "more than 64 certificates in a bundle");
}

TEST(Verify, ALeafOfAnyCaOfTheBundle) {
  const Authority old_ca;
  const Authority new_ca;
  const std::string leaf = new_ca.Issue(Must(MakeKey()), {"a"});
  const std::string bundle = JoinBundle({old_ca.certificate, new_ca.certificate});
  EXPECT_TRUE(Verify(leaf, bundle, kNow, kServer).ok());
  EXPECT_TRUE(Verify(leaf, bundle, kNow, {.server = true, .client = true}).ok());
  EXPECT_EQ(Verify(leaf, old_ca.certificate, kNow, kServer).code(), Code::kPermissionDenied);
  EXPECT_EQ(Verify(leaf, "", kNow, kServer).code(), Code::kPermissionDenied);
}

TEST(Verify, OnlyWhileItIsValid) {
  const Authority ca;
  const std::string leaf =
      ca.Issue(Must(MakeKey()), {"a"}, kServer, {.not_before = kNow, .not_after = kNow + kDay});
  EXPECT_EQ(Verify(leaf, ca.certificate, kNow - 1, kServer).message(),
            "certificate is not yet valid");
  EXPECT_TRUE(Verify(leaf, ca.certificate, kNow, kServer).ok());
  EXPECT_TRUE(Verify(leaf, ca.certificate, kNow + kDay - 1, kServer).ok());
  EXPECT_EQ(Verify(leaf, ca.certificate, kNow + kDay + 1, kServer).message(),
            "certificate has expired");
}

TEST(Verify, OnlyForItsUsage) {
  const Authority ca;
  const std::string leaf = ca.Issue(Must(MakeKey()), {"a"}, kServer);
  EXPECT_TRUE(Verify(leaf, ca.certificate, kNow, kServer).ok());
  EXPECT_EQ(Verify(leaf, ca.certificate, kNow, kClient).code(), Code::kPermissionDenied);
  EXPECT_EQ(Verify(leaf, ca.certificate, kNow, {.server = true, .client = true}).code(),
            Code::kPermissionDenied);
}

TEST(Verify, AnotherCaOfTheSameNameDoesNotDo) {
  const Authority ca;
  const Authority impostor;  // the same name, another key
  const std::string leaf = impostor.Issue(Must(MakeKey()), {"a"});
  EXPECT_EQ(Verify(leaf, ca.certificate, kNow, kServer).code(), Code::kPermissionDenied);
}

}  // namespace
}  // namespace optcache::pki
