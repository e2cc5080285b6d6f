#include "net/tls.h"

#include <map>

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

TEST(TlsContext, BeginsWithoutMaterial) {
  const TlsContext context(TlsRole::kServer);
  EXPECT_FALSE(context.ready());
  EXPECT_EQ(context.material(), nullptr);
  EXPECT_EQ(context.expires_at(), 0);
}

TEST(TlsContext, AServerNeedsACertificate) {
  TlsContext context(TlsRole::kServer);
  const Status status = context.Replace({});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "own certificate: there is none in the text");
  EXPECT_FALSE(context.ready());
}

TEST(TlsContext, AClientNeedsSomebodyToTrust) {
  TlsContext context(TlsRole::kClient);
  EXPECT_EQ(context.Replace({}).message(), "CA bundle: there is no certificate in the text");
  const std::string broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
  const Status status = context.Replace({.trust = broken});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("CA bundle: not PEM after 0 certificates"))
      << status.message();
}

TEST(TlsContext, ATextThatIsTooLongIsRefused) {
  TlsContext context(TlsRole::kClient);
  const Status status = context.Replace({.trust = std::string((1U << 20U) + 1, ' ')});
  EXPECT_EQ(status.message(), "CA bundle: longer than 1.00 MiB");
}

TEST(HandshakeFailures, CountsByReason) {
  HandshakeFailures failures;
  failures.Count(HandshakeFailure::kTimeout);
  failures.Count(HandshakeFailure::kNotTls);
  failures.Count(HandshakeFailure::kNotTls);
  std::map<std::string, double> seen;
  failures.Visit(
      [&](MetricKind kind, std::string_view name, const MetricLabels& labels, double value) {
        EXPECT_EQ(kind, MetricKind::kCounter);
        EXPECT_EQ(name, "optcache_tls_handshake_failures_total");
        EXPECT_EQ(labels.at(0).second, "control");
        seen[labels.at(1).second] = value;
      },
      {{"server", "control"}});
  EXPECT_EQ(seen.size(), HandshakeFailures::kKinds);
  EXPECT_EQ(seen["timeout"], 1);
  EXPECT_EQ(seen["not_tls"], 2);
  EXPECT_EQ(seen["untrusted"], 0);
}

}  // namespace
}  // namespace optcache::net
