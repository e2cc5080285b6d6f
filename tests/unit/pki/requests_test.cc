#include <gtest/gtest.h>

#include "unit/pki/authority.h"

namespace optcache::pki {
namespace {

using DnsNames = std::vector<std::string>;

TEST(Requests, SayWhoAsksForWhat) {
  const std::string key = Must(MakeKey());
  const DnsNames names = {"optcache-node", "optcache-node-7x2k"};
  const Request request = Must(ParseRequest(Must(MakeRequest(key, names))));
  EXPECT_EQ(request.dns_names, names);
  EXPECT_EQ(request.public_key, Must(PublicKeyOf(key)));
}

TEST(Requests, MayAskForNothing) {
  EXPECT_EQ(Must(ParseRequest(Must(MakeRequest(Must(MakeKey()), {})))).dns_names, DnsNames());
}

TEST(Requests, AskForDnsNamesOnly) {
  const std::string key = Must(MakeKey());
  for (const std::string name :
       {"", ".", "a..b", "-a", "a-", "A", "a b", "*.svc", "a,IP:10.0.0.1", "a."}) {
    const auto request = MakeRequest(key, {name});
    ASSERT_FALSE(request.has_value()) << name;
    EXPECT_EQ(request.error().message(),
              "'" + name + "' is not a DNS name in lower case without wildcards");
  }
  EXPECT_FALSE(MakeRequest(key, {std::string(64, 'a')}).has_value());
  EXPECT_TRUE(MakeRequest(key, {std::string(63, 'a') + "." + std::string(63, 'b')}).has_value());
}

TEST(Requests, AskForSoManyNamesAndNoMore) {
  const std::string key = Must(MakeKey());
  DnsNames names;
  for (std::size_t i = 0; i < kMaxDnsNames; ++i)
    names.push_back("name-" + std::to_string(i));
  EXPECT_EQ(Must(ParseRequest(Must(MakeRequest(key, names)))).dns_names, names);
  names.emplace_back("one-more");
  const auto request = MakeRequest(key, names);
  ASSERT_FALSE(request.has_value());
  EXPECT_EQ(request.error().message(), "more than 16 DNS names");
}

// Made with: openssl req -new -newkey ... -nodes -subj /CN=x [-addext subjectAltName=...]
// DNS:optcache-node,IP:10.0.0.1
constexpr std::string_view kWithAddress = R"(-----BEGIN CERTIFICATE REQUEST-----
MIH4MIGfAgEAMAwxCjAIBgNVBAMMAXgwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQ6OqQi54stNErifZWn3hyyteW/l+AaJ21uqvU8dqPekNe5Yc7/fDnEAkxwDkba
qKi3gLJHIYuGgSY607tIko38oDEwLwYJKoZIhvcNAQkOMSIwIDAeBgNVHREEFzAV
gg1vcHRjYWNoZS1ub2RlhwQKAAABMAoGCCqGSM49BAMCA0gAMEUCIQCArgTggdR3
1Hi0qo067XhgGrMnyrCQMPBZZmAjVQ4GlAIgHr+eKrHhHWieafmvr0uoNWkKsgno
fe9I6YDirtWkDNY=
-----END CERTIFICATE REQUEST-----
)";
// rsa:2048
constexpr std::string_view kRsa = R"(-----BEGIN CERTIFICATE REQUEST-----
MIICUTCCATkCAQAwDDEKMAgGA1UEAwwBeDCCASIwDQYJKoZIhvcNAQEBBQADggEP
ADCCAQoCggEBAKvv6RW2HqyLZ+MPuHxC/Hv5QsR8pgU9ITQpRdldBXu1JlPQcnvA
y+DYHjlI+MJcbF9Bho6D4wPzsywL7scpQev5HkJBV/hCM75A02ThWSiTMN7QFEsH
5TBIgN948rm0EdpLVPqAM5sloG5YAQxKxtxHb8SHANk4MwSEXUmHwEG8MHFaMW4f
fCV675gkV7dU2mXpZsOVG+/jcj1YoqWxHx3bgy+zL9MG3LapBDBHRlirbLwQfIdv
dU6RbxtVNfIXHtYupikIuDqlccP42XWbbfh6eioxEsv+7CL+008h/UBAbHcpTjqJ
xxR4frGqrQqJ6v8jTCldl5kSEfp9B6eV+oMCAwEAAaAAMA0GCSqGSIb3DQEBCwUA
A4IBAQAdOMEMrcdMl3VO7MIBi1WnJ5XJQKEOb0ocu2vKuRZMLVoTTBhG+UqwbMNL
FZ3hAiq0G29yol3HJT4U4jESxD2O05J56u+V0G1mKifFkQf8SAxN6KM4bosdBCj5
icTf9V5Rykq5hhikpZIDuOiKqVydePjDVXDXnIjAUNeXMV1e4FKDDAEascF+ScrE
4H2lQRbl4G/Ibgcw/pXuYIHJVlRPP4aP8i5sEVS/XqNc8L51Arxmn82eC3QFlPsK
BrsisuKVQQGBwEUoHiWTX565uu4WKrHt27ZOzWc3YW6AKhvTnnzo6j2djt7J+DU1
UZ9NtWxsV0+qO2WJVa+eLPtjgUbz
-----END CERTIFICATE REQUEST-----
)";
// ec, ec_paramgen_curve:P-384
constexpr std::string_view kP384 = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBBDCBiwIBADAMMQowCAYDVQQDDAF4MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE
bduV5vwFa1pJSYRbPClVXEznmfUhP60L2OJK/ZGgzei4peCP73ZOjKfJATJtgbRb
1hTCkwOscuxFAhh7ZCbr/gyJ5LfPt0zB3v5r1HV19TdQy7q+uXkk8M9HE1qJyLU9
oAAwCgYIKoZIzj0EAwIDaAAwZQIwVSIAqfcJJJrrtnspDn01vI45yB8by2gjAPV6
YyBMP6e1/vOa3forYNG3AUS3gowMAjEA0qcBGmFalP9jiFnurjwMheEG/EThKpbH
RYxfEWhbl6B4OBrzTSgZZHdEPr8iQFSX
-----END CERTIFICATE REQUEST-----
)";
// ec, ec_paramgen_curve:P-256, ec_param_enc:explicit
constexpr std::string_view kExplicitCurve = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBuzCCAWICAQAwDDEKMAgGA1UEAwwBeDCCAUswggEDBgcqhkjOPQIBMIH3AgEB
MCwGByqGSM49AQECIQD/////AAAAAQAAAAAAAAAAAAAAAP///////////////zBb
BCD/////AAAAAQAAAAAAAAAAAAAAAP///////////////AQgWsY12Ko6k+ez671V
dpiGvGUdBrDMU7D2O848PifSYEsDFQDEnTYIhucEk2pmeOETnSa3gZ9+kARBBGsX
0fLhLEJH+Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT+NC4v4af5uO5+tKfA+eFivO
M1drMV7Oy7ZAaDe/UfUCIQD/////AAAAAP//////////vOb6racXnoTzucrC/GMl
UQIBAQNCAATlTnMF+1Irjq4HUuFEEZgRmOq24BvOrDkNyzazK9DJ7GhBCx1Pjx73
WFfuMQpoFkXAaWfiRlb3XeSNlNt2/8eOoAAwCgYIKoZIzj0EAwIDRwAwRAIgd5jR
zSGt5ESQmS05obD4cVbkKXPSTcfDMNIemU0EGr4CID9MwzpsUbBKcsX1EmzCZeFB
bAmhLGg18TT/IljDN/Pp
-----END CERTIFICATE REQUEST-----
)";
// A good one, with the last bit of the signature turned over.
constexpr std::string_view kTampered = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHxMIGZAgEAMAwxCjAIBgNVBAMMAXgwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AATri4of/QHMWPW7IMZ2282GWw1Rm1REupyeMhB0MxyhzhgTMPoFoognG9pV2MJ9
1QYEjXYKP3Dquev/ldDEvgKRoCswKQYJKoZIhvcNAQkOMRwwGjAYBgNVHREEETAP
gg1vcHRjYWNoZS1ub2RlMAoGCCqGSM49BAMCA0cAMEQCIEpB+xLWxG4a5N+j9lwH
VGm77zsbiSE2Xat/FEZKsxh8AiAhTNCuqNxRWDp/vcr2+wl2ftqfaTGgv4Oc4QCB
YFSsdw==
-----END CERTIFICATE REQUEST-----
)";

TEST(Requests, ForAddressesAreRefused) {
  const auto request = ParseRequest(kWithAddress);
  ASSERT_FALSE(request.has_value());
  EXPECT_EQ(request.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(request.error().message(), "the request asks for a name that is not a DNS name");
}

TEST(Requests, OfOtherKeysAreRefused) {
  for (const std::string_view text : {kRsa, kP384, kExplicitCurve}) {
    const auto request = ParseRequest(text);
    ASSERT_FALSE(request.has_value()) << text;
    EXPECT_EQ(request.error().message(), "the key is not one for ECDSA on P-256");
  }
}

TEST(Requests, ThatDoNotProveTheirKeyAreRefused) {
  const auto request = ParseRequest(kTampered);
  ASSERT_FALSE(request.has_value());
  EXPECT_EQ(request.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(request.error().message(), "the request is not signed by its own key");
}

TEST(Requests, WhatIsNoneIsRefused) {
  const Authority ca;
  for (const std::string& text : {std::string(), std::string("request"), ca.certificate}) {
    const auto request = ParseRequest(text);
    ASSERT_FALSE(request.has_value());
    EXPECT_EQ(request.error().message(), "not a certificate signing request in PEM");
  }
  EXPECT_FALSE(ParseRequest(std::string(kMaxPemBytes + 1, ' ')).has_value());
}

}  // namespace
}  // namespace optcache::pki
