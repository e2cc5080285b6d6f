#include <stdlib.h>
#include <sys/wait.h>

#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "unit/pki/authority.h"

namespace optcache::pki {
namespace {

using DnsNames = std::vector<std::string>;

TEST(Certificates, ACaSaysWhatItIs) {
  const Authority ca;
  const Certificate seen = Must(Inspect(ca.certificate));
  EXPECT_EQ(seen.subject, "optcache test CA");
  EXPECT_TRUE(seen.is_ca);
  EXPECT_EQ(seen.validity, kYear);
  EXPECT_EQ(seen.dns_names, DnsNames());
  EXPECT_TRUE(KeyMatches(ca.key, ca.certificate).ok());
}

TEST(Certificates, ALeafSaysWhoItIsAndWhatFor) {
  const Authority ca;
  const DnsNames names = {"optcache-operator.system.svc", "optcache-operator"};
  const Validity validity = {.not_before = kNow, .not_after = kNow + 7 * kDay};
  const Certificate seen =
      Must(Inspect(ca.Issue(Must(MakeKey()), names, {.server = true}, validity)));
  EXPECT_EQ(seen.subject, names.front());
  EXPECT_EQ(seen.dns_names, names);
  EXPECT_EQ(seen.usages, (Usages{.server = true, .client = false}));
  EXPECT_EQ(seen.validity, validity);
  EXPECT_FALSE(seen.is_ca);
}

TEST(Certificates, EachHasASerialOfItsOwn) {
  const Authority ca;
  const std::string key = Must(MakeKey());
  const Certificate one = Must(Inspect(ca.Issue(key, {"a"})));
  const Certificate other = Must(Inspect(ca.Issue(key, {"a"})));
  EXPECT_NE(one.serial, other.serial);
  EXPECT_LE(one.serial.size(), 40U);
  EXPECT_EQ(one.public_key_digest, other.public_key_digest);
}

TEST(Certificates, TheDigestOfTheKeyTellsKeysApart) {
  const Authority ca;
  const Certificate one = Must(Inspect(ca.Issue(Must(MakeKey()), {"a"})));
  const Certificate other = Must(Inspect(ca.Issue(Must(MakeKey()), {"a"})));
  EXPECT_EQ(one.public_key_digest.size(), 64U);
  EXPECT_NE(one.public_key_digest, other.public_key_digest);
}

TEST(Certificates, ANameTooLongForASubjectStandsInTheExtensionAlone) {
  const Authority ca;
  const std::string name = std::string(60, 'a') + "." + std::string(60, 'b');
  const Certificate seen = Must(Inspect(ca.Issue(Must(MakeKey()), {name})));
  EXPECT_EQ(seen.subject, "");
  EXPECT_EQ(seen.dns_names, DnsNames{name});
}

TEST(Certificates, OfARequestCarryItsKey) {
  const Authority ca;
  const std::string key = Must(MakeKey());
  const Request request = Must(ParseRequest(Must(MakeRequest(key, {"optcache-node"}))));
  const auto leaf = Sign(ca.certificate, ca.key,
                         {.public_key = request.public_key,
                          .dns_names = request.dns_names,
                          .usages = {.client = true},
                          .validity = {.not_before = kNow, .not_after = kNow + kDay}});
  ASSERT_TRUE(leaf.has_value()) << leaf.error().message();
  EXPECT_TRUE(KeyMatches(key, *leaf).ok());
}

class Refusals : public testing::Test {
 protected:
  // What Sign says instead of signing.
  std::string Answer(const std::string& issuer, const std::string& issuer_key) const {
    const auto made = Sign(issuer, issuer_key, leaf);
    if (made) return "signed";
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument);
    return made.error().message();
  }
  std::string Answer() const { return Answer(ca.certificate, ca.key); }

  Authority ca;
  std::string key = Must(MakeKey());
  Leaf leaf = {.public_key = Must(PublicKeyOf(key)),
               .dns_names = {"a"},
               .usages = {.server = true},
               .validity = {.not_before = kNow, .not_after = kNow + kDay}};
};

TEST_F(Refusals, TheKeyOfAnotherCa) {
  EXPECT_EQ(Answer(ca.certificate, key), "the CA's key is not that of its certificate");
}

TEST_F(Refusals, ALeafSignsNothing) {
  EXPECT_EQ(Answer(ca.Issue(key, {"a"}), key), "the signing certificate is no CA");
}

TEST_F(Refusals, NoName) {
  leaf.dns_names.clear();
  EXPECT_EQ(Answer(), "a certificate needs a DNS name");
}

TEST_F(Refusals, ANameThatIsNone) {
  leaf.dns_names = {"a,IP:10.0.0.1"};
  EXPECT_EQ(Answer(), "'a,IP:10.0.0.1' is not a DNS name in lower case without wildcards");
}

TEST_F(Refusals, NoUsage) {
  leaf.usages = {};
  EXPECT_EQ(Answer(), "a certificate needs a usage");
}

TEST_F(Refusals, AnEndBeforeTheBeginning) {
  leaf.validity.not_after = kNow - 1;
  EXPECT_EQ(Answer(), "the validity ends before it begins");
}

TEST_F(Refusals, LongerThanTheCa) {
  leaf.validity.not_after = kYear.not_after;
  EXPECT_EQ(Answer(), "signed");
  ++leaf.validity.not_after;
  EXPECT_EQ(Answer(), "the certificate would be valid longer than its CA");
}

TEST_F(Refusals, WhatIsNoKey) {
  leaf.public_key = ca.certificate;
  EXPECT_TRUE(Answer().starts_with("not a public key in PEM"));
}

TEST(Certificates, ACaNeedsANameAndAValidity) {
  const std::string key = Must(MakeKey());
  EXPECT_FALSE(MakeCa(key, "", kYear).has_value());
  EXPECT_FALSE(MakeCa(key, std::string(65, 'a'), kYear).has_value());
  EXPECT_FALSE(MakeCa(key, "ca", {.not_before = 2, .not_after = 1}).has_value());
}

TEST(Certificates, WhatIsNoneCannotBeInspected) {
  const auto seen = Inspect("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  ASSERT_FALSE(seen.has_value());
  EXPECT_EQ(seen.error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(seen.error().message().starts_with("not a certificate in PEM"));
}

// Its exit status is 0 if OpenSSL's own program is content.
int Openssl(const std::string& arguments) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the test has one thread
  const int status = ::system(("openssl " + arguments + " >/dev/null 2>&1").c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Certificates, AreWhatOpensslsOwnProgramAcceptsToo) {
  if (Openssl("version") != 0) GTEST_SKIP() << "there is no openssl on this machine";
  const Authority ca;
  const std::string key = Must(MakeKey());
  const TempDir dir;
  dir.Write("ca.pem", ca.certificate);
  dir.Write("other.pem", Authority().certificate);
  dir.Write("server.pem", ca.Issue(key, {"optcache-operator"}, {.server = true}));
  dir.Write("request.pem", Must(MakeRequest(key, {"optcache-node"})));
  const std::string now = "verify -x509_strict -attime " + std::to_string(kNow) + " -CAfile ";
  const std::string verify = now + dir.Join("ca.pem") + " ";
  const std::string server = dir.Join("server.pem");
  EXPECT_EQ(Openssl(verify + "-purpose sslserver -verify_hostname optcache-operator " + server), 0);
  EXPECT_NE(Openssl(verify + "-purpose sslclient " + server), 0);
  EXPECT_NE(Openssl(verify + "-verify_hostname optcache-node " + server), 0);
  EXPECT_NE(Openssl(now + dir.Join("other.pem") + " " + server), 0);
  EXPECT_EQ(Openssl("req -verify -noout -in " + dir.Join("request.pem")), 0);
}

}  // namespace
}  // namespace optcache::pki
