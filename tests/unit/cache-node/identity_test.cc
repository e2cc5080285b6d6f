#include "cache-node/trust/identity.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "pki/pki.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"
#include "unit/cache-node/fake_http.h"

namespace optcache::node {
namespace {

using net::HttpResponse;

constexpr std::int64_t kIdentityNow = 1'800'000'001;  // of ManualClock
constexpr std::int64_t kHour = 3600;

struct Authority {
  std::string key = pki::MakeKey().value();
  std::string certificate =
      pki::MakeCa(key, "test",
                  {.not_before = kIdentityNow - kHour, .not_after = kIdentityNow + 1000 * kHour})
          .value();

  // What the operator would answer to a request.
  std::string Sign(const std::string& csr, pki::Validity validity,
                   std::vector<std::string> names = {"optcache-node", "node-a"}) const {
    const pki::Request request = pki::ParseRequest(csr).value();
    return pki::Sign(certificate, key,
                     {.public_key = request.public_key,
                      .dns_names = std::move(names),
                      .usages = {.server = true, .client = true},
                      .validity = validity})
        .value();
  }
};

class IdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_.Write("token", "abc.def");
    dir_.Write("ca.crt", authority_.certificate);
    dir_.Write("identity/.keep", "");
    Start();
  }
  void Start() {
    server_ = std::make_shared<net::TlsContext>(net::TlsRole::kServer,
                                                net::ClientCertificate::kRequested);
    client_ = std::make_shared<net::TlsContext>(net::TlsRole::kClient);
    identity_ = std::make_unique<Identity>(loop_, clock_,
                                           IdentityOptions{.name = "node-a",
                                                           .token_file = dir_.Join("token"),
                                                           .ca_file = dir_.Join("ca.crt"),
                                                           .folder = dir_.Join("identity")},
                                           control_, server_, client_);
    identity_->Start([this] { ++ready_; });
  }
  std::string Csr() const { return http_.requests.back().body; }
  void AnswerWith(const std::string& chain) { http_.Answer(HttpResponse::Text(200, chain)); }

  TempDir dir_;
  ManualClock clock_;
  Authority authority_;
  net::EventLoop loop_;
  FakeHttp http_;
  ControlHttp control_{http_, "https://operator.system.svc:8443"};
  std::shared_ptr<net::TlsContext> server_;
  std::shared_ptr<net::TlsContext> client_;
  std::unique_ptr<Identity> identity_;
  int ready_ = 0;
};

TEST_F(IdentityTest, AsksWithItsTokenForBothOfItsNames) {
  ASSERT_EQ(http_.requests.size(), 1U);
  const net::HttpRequest& request = http_.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "https://operator.system.svc:8443/v1/certificates");
  EXPECT_EQ(net::FindHeader(request.headers, "Authorization"), "Bearer abc.def");
  EXPECT_EQ(pki::ParseRequest(request.body)->dns_names,
            (std::vector<std::string>{"optcache-node", "node-a"}));
  EXPECT_EQ(identity_->Ready().code(), Code::kUnavailable);
  EXPECT_EQ(ready_, 0);
}

TEST_F(IdentityTest, BothSidesOfItsConnectionsShowWhatItGot) {
  AnswerWith(
      authority_.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour}));
  EXPECT_TRUE(identity_->Ready().ok()) << identity_->Ready().message();
  EXPECT_EQ(ready_, 1);
  EXPECT_TRUE(server_->ready());
  EXPECT_TRUE(client_->ready());
  EXPECT_EQ(server_->material()->trust, authority_.certificate);
}

TEST_F(IdentityTest, ReportsFromWhenAndUntilWhenItsCertificateIsValid) {
  const auto validity = [this] {
    std::vector<double> times;
    identity_->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels&, double value) {
          if (name.ends_with("_timestamp_seconds")) times.push_back(value);
        });
    return times;
  };
  EXPECT_EQ(validity(), (std::vector<double>{0, 0})) << "it has none yet";
  AnswerWith(
      authority_.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour}));
  EXPECT_EQ(validity(), (std::vector<double>{kIdentityNow, kIdentityNow + kHour}));
}

TEST_F(IdentityTest, GoesOnWithWhatItHadWhenItIsStartedAgain) {
  AnswerWith(
      authority_.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour}));
  const std::string key = server_->material()->key;
  Start();
  EXPECT_TRUE(identity_->Ready().ok());
  EXPECT_EQ(server_->material()->key, key);
  EXPECT_EQ(http_.requests.size(), 1U) << "it asks for nothing";
}

TEST_F(IdentityTest, RenewsAtTwoThirdsAndServesOnMeanwhile) {
  AnswerWith(
      authority_.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour}));
  const std::string old = server_->material()->key;
  clock_.Advance(std::chrono::seconds(kHour * 2 / 3));
  Start();
  EXPECT_TRUE(identity_->Ready().ok());
  EXPECT_EQ(server_->material()->key, old);
  ASSERT_EQ(http_.requests.size(), 2U);
  AnswerWith(
      authority_.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + 2 * kHour}));
  EXPECT_NE(server_->material()->key, old) << "a new certificate has a new key";
}

TEST_F(IdentityTest, AnExpiredOneIsOfNoUse) {
  AnswerWith(
      authority_.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour}));
  clock_.Advance(std::chrono::seconds(kHour + 1));
  EXPECT_EQ(identity_->Ready().code(), Code::kUnavailable);
  Start();
  EXPECT_FALSE(server_->ready());
  EXPECT_EQ(http_.requests.size(), 2U);
}

TEST_F(IdentityTest, TakesNoCertificateOfAnotherKey) {
  const std::string other = pki::MakeRequest(pki::MakeKey().value(), {"optcache-node"}).value();
  AnswerWith(
      authority_.Sign(other, {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour}));
  EXPECT_FALSE(identity_->Ready().ok());
  EXPECT_FALSE(server_->ready());
}

TEST_F(IdentityTest, TakesNoCertificateOfAnotherAuthority) {
  const Authority other;
  AnswerWith(other.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour}));
  EXPECT_FALSE(identity_->Ready().ok());
}

TEST_F(IdentityTest, TakesNoCertificateThatIsNotANodes) {
  AnswerWith(authority_.Sign(Csr(), {.not_before = kIdentityNow, .not_after = kIdentityNow + kHour},
                             {"node-a"}));
  EXPECT_FALSE(identity_->Ready().ok());
}

TEST_F(IdentityTest, SaysWhatItWaitsFor) {
  http_.Answer(HttpResponse::Text(403, "this token is of another pod"));
  EXPECT_NE(identity_->Ready().message().find("this token is of another pod"), std::string::npos);
}

TEST_F(IdentityTest, WaitsForABundleThatComesLater) {
  std::filesystem::remove(dir_.Join("ca.crt"));
  const std::size_t asked = http_.requests.size();
  Start();
  EXPECT_EQ(http_.requests.size(), asked) << "it would not know whom it asks";
  EXPECT_NE(identity_->Ready().message().find("CA bundle"), std::string::npos);
}

TEST_F(IdentityTest, ADamagedFileIsNoHindrance) {
  dir_.Write("identity/identity.pem", "-----BEGIN CERTIFICATE-----\nrubbish");
  Start();
  EXPECT_EQ(http_.requests.size(), 2U);
}

TEST(RenewAt, IsTwoThirdsOfItsLife) {
  EXPECT_EQ(RenewAt(0, 90), 60);
  EXPECT_EQ(RenewAt(100, 100 + 86400), 100 + 57600);
}

}  // namespace
}  // namespace optcache::node
