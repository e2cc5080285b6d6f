#include <algorithm>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/check.h"
#include "pki/internal/openssl.h"
#include "pki/pki.h"

namespace optcache::pki {
namespace {

using Store = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freer<X509_STORE_CTX_free>>;

// Empty: it is good. Else what is wrong.
std::string Fault(X509_STORE* store, X509* leaf, std::int64_t unix_seconds, int purpose) {
  const StoreContext context(X509_STORE_CTX_new());
  CHECK(context != nullptr);
  CHECK(X509_STORE_CTX_init(context.get(), store, leaf, nullptr) == 1);
  X509_VERIFY_PARAM* const param = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(param, unix_seconds);
  X509_VERIFY_PARAM_set_purpose(param, purpose);
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  return good ? "" : X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

}  // namespace

Result<std::vector<std::string>> SplitBundle(std::string_view bundle) {
  ASSIGN_OR_RETURN(const Bio bio, Reader(bundle, kMaxBundleBytes));
  std::vector<std::string> certificates;
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    const X509Certificate owned(one);
    if (certificates.size() >= kMaxCertificates) {
      return Error(
          Bad("more than " + std::to_string(kMaxCertificates) + " certificates in a bundle"));
    }
    ASSIGN_OR_RETURN(std::string text, CertificatePem(one));
    certificates.push_back(std::move(text));
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) {
    return Error(Bad("certificate number " + std::to_string(certificates.size() + 1) +
                     " of the bundle is broken"));
  }
  return certificates;
}

std::string JoinBundle(const std::vector<std::string>& certificates) {
  std::string text;
  for (auto one = certificates.begin(); one != certificates.end(); ++one) {
    if (std::find(certificates.begin(), one, *one) != one) continue;
    text += *one;
    if (!text.empty() && text.back() != '\n') text += '\n';
  }
  return text;
}

Status Verify(std::string_view leaf, std::string_view bundle, std::int64_t unix_seconds,
              Usages usages) {
  ASSIGN_OR_RETURN(const X509Certificate certificate, ReadCertificate(leaf));
  ASSIGN_OR_RETURN(const auto trusted, SplitBundle(bundle));
  const Store store(X509_STORE_new());
  CHECK(store != nullptr);
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  for (const std::string& one : trusted) {
    ASSIGN_OR_RETURN(const X509Certificate ca, ReadCertificate(one));
    if (X509_STORE_add_cert(store.get(), ca.get()) != 1) {
      return OpensslStatus("put a CA into the store");
    }
  }
  std::string fault;
  if (usages.server) {
    fault = Fault(store.get(), certificate.get(), unix_seconds, X509_PURPOSE_SSL_SERVER);
  }
  if (usages.client && fault.empty()) {
    fault = Fault(store.get(), certificate.get(), unix_seconds, X509_PURPOSE_SSL_CLIENT);
  }
  if (!fault.empty()) return {Code::kPermissionDenied, fault};
  return OkStatus();
}

}  // namespace optcache::pki
