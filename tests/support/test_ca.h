#pragma once

// A certificate authority for tests of TLS: makes keys and leaves, good ones and bad ones.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "net/tls.h"

namespace optcache::net {

// In seconds from now.
struct TestValidity {
  long begin = -3600;
  long end = 3600;
};

class TestCa {
 public:
  explicit TestCa(const std::string& name = "test") : key_(MakeKey()), certificate_(X509_new()) {
    Describe(name, key_.get(), {});
    Extend(NID_basic_constraints, "critical,CA:TRUE");
    Extend(NID_key_usage, "critical,keyCertSign");
    CHECK(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0);
    pem_ = ToPem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate_.get()); });
  }

  const std::string& pem() const { return pem_; }

  // What the owner of a fresh leaf for `dns_names` needs, trusting this CA alone.
  TlsMaterial Leaf(const std::vector<std::string>& dns_names, TestValidity validity = {}) const {
    const Key key = MakeKey();
    TestCa leaf(X509_new());
    leaf.Describe("leaf", key.get(), validity);
    CHECK(X509_set_issuer_name(leaf.certificate_.get(),
                               X509_get_subject_name(certificate_.get())) == 1);
    std::string names;
    for (const std::string& name : dns_names)
      names += (names.empty() ? "DNS:" : ",DNS:") + name;
    if (!names.empty()) leaf.Extend(NID_subject_alt_name, names);
    CHECK(X509_sign(leaf.certificate_.get(), key_.get(), EVP_sha256()) > 0);
    return {
        .chain = ToPem([&](BIO* bio) { return PEM_write_bio_X509(bio, leaf.certificate_.get()); }),
        .key = ToPem([&](BIO* bio) {
          return PEM_write_bio_PKCS8PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr,
                                               nullptr);
        }),
        .trust = pem_};
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
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(BIO* bio) const { BIO_free_all(bio); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;

  explicit TestCa(X509* blank) : certificate_(blank) {}

  static Key MakeKey() { return Key(EVP_EC_gen("P-256")); }

  template <typename Write>
  static std::string ToPem(const Write& write) {
    const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
    CHECK(write(bio.get()) == 1);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }

  // For itself, until an issuer is set.
  void Describe(const std::string& name, EVP_PKEY* key, TestValidity validity) {
    static long serial = 0;
    X509* const one = certificate_.get();
    CHECK(X509_set_version(one, X509_VERSION_3) == 1);
    CHECK(ASN1_INTEGER_set(X509_get_serialNumber(one), ++serial) == 1);
    X509_NAME* const subject = X509_get_subject_name(one);
    CHECK(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                     reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                                     0) == 1);
    CHECK(X509_set_issuer_name(one, subject) == 1);
    CHECK(X509_gmtime_adj(X509_getm_notBefore(one), validity.begin) != nullptr);
    CHECK(X509_gmtime_adj(X509_getm_notAfter(one), validity.end) != nullptr);
    CHECK(X509_set_pubkey(one, key) == 1);
  }

  void Extend(int nid, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    CHECK(extension != nullptr);
    CHECK(X509_add_ext(certificate_.get(), extension, -1) == 1);
    X509_EXTENSION_free(extension);
  }

  Key key_;
  std::unique_ptr<X509, Free> certificate_;
  std::string pem_;
};

}  // namespace optcache::net
