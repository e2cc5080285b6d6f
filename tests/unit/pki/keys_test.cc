#include <gtest/gtest.h>

#include "unit/pki/authority.h"

namespace optcache::pki {
namespace {

TEST(Keys, AreNewEachTime) {
  const std::string key = Must(MakeKey());
  EXPECT_TRUE(key.starts_with("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_NE(key, Must(MakeKey()));
}

TEST(Keys, ThePublicHalfIsAlwaysTheSame) {
  const std::string key = Must(MakeKey());
  const std::string half = Must(PublicKeyOf(key));
  EXPECT_TRUE(half.starts_with("-----BEGIN PUBLIC KEY-----\n"));
  EXPECT_EQ(half, Must(PublicKeyOf(key)));
}

TEST(Keys, MatchTheirOwnCertificateAlone) {
  const Authority ca;
  const std::string key = Must(MakeKey());
  const std::string certificate = ca.Issue(key, {"optcache-node"});
  EXPECT_TRUE(KeyMatches(key, certificate).ok());
  const Status other = KeyMatches(Must(MakeKey()), certificate);
  EXPECT_EQ(other.code(), Code::kInvalidArgument);
  EXPECT_EQ(other.message(), "the private key is not that of the certificate");
}

TEST(Keys, WhatIsNoKeyIsRefused) {
  const Authority ca;
  for (const std::string& text : {std::string(), std::string("key"), ca.certificate}) {
    const auto half = PublicKeyOf(text);
    ASSERT_FALSE(half.has_value());
    EXPECT_EQ(half.error().code(), Code::kInvalidArgument);
    EXPECT_TRUE(half.error().message().starts_with("not an unencrypted private key in PEM"));
  }
}

TEST(Keys, AnEncryptedKeyIsRefusedWithoutAskingForItsPassword) {
  const std::string encrypted = R"(-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhYF1RXHeTMrAICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEBZg6SIykQXZivvR6gGPV70EgZCR
6yKDJjBAzRKIeMaI0hneRmIeBehZxq7BSVV15VduoqIwdoWpspxVxnq9GujTQXyq
4nniOJXRvtOWLwBVqw8nNOcX2vfKahXXA0iG/JhMYkbhtMQBf/MAhgEKOLDOFV5g
rjoySRDWRIZWPtoDgdC6t5NpXDuVFytL2egciEwB96LN3rqD2sRSlZqOUCqmf+E=
-----END ENCRYPTED PRIVATE KEY-----
)";
  const auto half = PublicKeyOf(encrypted);
  ASSERT_FALSE(half.has_value());
  EXPECT_EQ(half.error().code(), Code::kInvalidArgument);
}

TEST(Keys, ATextThatIsTooLongIsRefused) {
  const auto half = PublicKeyOf(std::string(kMaxPemBytes + 1, '-'));
  ASSERT_FALSE(half.has_value());
  EXPECT_EQ(half.error().message(), "the text is longer than 64.0 KiB");
}

}  // namespace
}  // namespace optcache::pki
