#pragma once

// A certificate authority for tests of TLS: makes keys and leaves, good ones and bad ones. Link
// pki.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "net/tls.h"
#include "pki/pki.h"

namespace optcache::net {

// In seconds from now. The CA's own ends after two hours.
struct TestValidity {
  std::int64_t begin = -3600;
  std::int64_t end = 3600;
};

class TestCa {
 public:
  explicit TestCa(const std::string& name = "test")
      : pem_(Must(pki::MakeCa(key_, name, From({.begin = -7200, .end = 7200})))) {}

  const std::string& pem() const { return pem_; }

  // What the owner of a fresh leaf for `dns_names` needs, trusting this CA alone.
  TlsMaterial Leaf(const std::vector<std::string>& dns_names, TestValidity validity = {},
                   pki::Usages usages = {.server = true, .client = true}) const {
    const std::string key = Must(pki::MakeKey());
    const pki::Leaf leaf = {.public_key = Must(pki::PublicKeyOf(key)),
                            .dns_names = dns_names,
                            .usages = usages,
                            .validity = From(validity)};
    return {.chain = Must(pki::Sign(pem_, key_, leaf)), .key = key, .trust = pem_};
  }

  // Sides that trust this CA; a client without a certificate of its own.
  std::shared_ptr<TlsContext> Server(const std::vector<std::string>& dns_names) const {
    return Context(TlsRole::kServer, Leaf(dns_names));
  }
  std::shared_ptr<TlsContext> Client() const {
    return Context(TlsRole::kClient, {.chain = {}, .key = {}, .trust = pem_});
  }
  std::shared_ptr<TlsContext> Client(const std::vector<std::string>& dns_names) const {
    return Context(TlsRole::kClient, Leaf(dns_names));
  }

  static std::shared_ptr<TlsContext> Context(TlsRole role, TlsMaterial material) {
    auto context = std::make_shared<TlsContext>(role, ClientCertificate::kRequested);
    const Status status = context->Replace(std::move(material));
    CHECK(status.ok());
    return context;
  }

 private:
  static pki::Validity From(TestValidity validity) {
    const auto now = static_cast<std::int64_t>(SystemClock().UnixSeconds());
    return {.not_before = now + validity.begin, .not_after = now + validity.end};
  }
  static std::string Must(Result<std::string> made) {
    CHECK(made.has_value());
    return *std::move(made);
  }

  std::string key_ = Must(pki::MakeKey());
  std::string pem_;
};

}  // namespace optcache::net
