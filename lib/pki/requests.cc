#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/check.h"
#include "pki/internal/openssl.h"
#include "pki/pki.h"

namespace optcache::pki {
namespace {

struct FreeExtensions {
  void operator()(STACK_OF(X509_EXTENSION) * extensions) const {
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  }
};
using Extensions = std::unique_ptr<STACK_OF(X509_EXTENSION), FreeExtensions>;

bool AddNames(X509_REQ* request, const std::vector<std::string>& dns_names) {
  const Names names = MakeNames(dns_names);
  STACK_OF(X509_EXTENSION)* list = nullptr;
  const bool made = X509V3_add1_i2d(&list, NID_subject_alt_name, names.get(), 0, 0) == 1;
  const Extensions extensions(list);
  return made && X509_REQ_add_extensions(request, extensions.get()) == 1;
}

Result<std::vector<std::string>> NamesIn(X509_REQ* request) {
  const Extensions extensions(X509_REQ_get_extensions(request));
  int state = 0;  // -1: there is none, -2: there are several
  const Names names(static_cast<GENERAL_NAMES*>(
      X509V3_get_d2i(extensions.get(), NID_subject_alt_name, &state, nullptr)));
  ERR_clear_error();
  if (names == nullptr && state != -1) {
    return Error(Bad("the request's names are broken or given twice"));
  }
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    if (sk_GENERAL_NAME_value(names.get(), i)->type != GEN_DNS) {
      return Error(Bad("the request asks for a name that is not a DNS name"));
    }
  }
  ASSIGN_OR_RETURN(auto dns_names, DnsNamesOf(names.get()));
  RETURN_IF_ERROR(CheckDnsNames(dns_names));
  return dns_names;
}

}  // namespace

Result<std::string> MakeRequest(std::string_view key, const std::vector<std::string>& dns_names) {
  RETURN_IF_ERROR(CheckDnsNames(dns_names));
  ASSIGN_OR_RETURN(const Key own, ReadPrivateKey(key));
  const X509Request request(X509_REQ_new());
  CHECK(request != nullptr);
  const bool named = dns_names.empty() ||
                     (SetCommonName(X509_REQ_get_subject_name(request.get()), dns_names.front()) &&
                      AddNames(request.get(), dns_names));
  const bool made = named && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_REQ_set_pubkey(request.get(), own.get()) == 1 &&
                    X509_REQ_sign(request.get(), own.get(), EVP_sha256()) > 0;
  const Bio bio = Writer();
  if (!made || PEM_write_bio_X509_REQ(bio.get(), request.get()) != 1) {
    return Error(OpensslStatus("make a certificate signing request"));
  }
  return TextOf(bio);
}

Result<Request> ParseRequest(std::string_view pem) {
  ASSIGN_OR_RETURN(const Bio bio, Reader(pem, kMaxPemBytes));
  const X509Request request(PEM_read_bio_X509_REQ(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  if (request == nullptr) return Error(Bad("not a certificate signing request in PEM"));
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  if (key == nullptr) return Error(Bad("the request has no key that we know"));
  RETURN_IF_ERROR(CheckKind(key));
  const bool proven = X509_REQ_verify(request.get(), key) == 1;
  ERR_clear_error();
  if (!proven) return Error(Bad("the request is not signed by its own key"));
  ASSIGN_OR_RETURN(auto dns_names, NamesIn(request.get()));
  ASSIGN_OR_RETURN(auto public_key, PublicKeyPem(key));
  return Request{.public_key = std::move(public_key), .dns_names = std::move(dns_names)};
}

}  // namespace optcache::pki
