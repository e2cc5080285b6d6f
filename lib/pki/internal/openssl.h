#pragma once

// What the .cc files of pki need to speak with OpenSSL.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/bytes.h"
#include "base/result.h"
#include "pki/pki.h"

namespace optcache::pki {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using X509Request = std::unique_ptr<X509_REQ, Freer<X509_REQ_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;

inline Status Bad(std::string message) {
  return {Code::kInvalidArgument, std::move(message)};
}

// kInternal with the latest of OpenSSL's errors, which are then forgotten.
Status OpensslStatus(std::string_view doing);

// For every reading of PEM: what is encrypted is an error, not a question on the terminal.
int NoPassword(char* buffer, int size, int writing, void* unused);

// A reader of `pem`; kInvalidArgument if it is longer than `limit`.
Result<Bio> Reader(std::string_view pem, std::size_t limit);
// A writer, and what was written to it.
Bio Writer();
std::string TextOf(const Bio& writer);

Result<Key> ReadPrivateKey(std::string_view pem);
Result<Key> ReadPublicKey(std::string_view pem);
// ECDSA on P-256, named and not spelled out?
Status CheckKind(const EVP_PKEY* key);
Result<std::string> PublicKeyPem(EVP_PKEY* key);

// The first one of `pem`.
Result<X509Certificate> ReadCertificate(std::string_view pem);
Result<std::string> CertificatePem(X509* certificate);

// Lower-case letters, digits and hyphens between dots, as RFC 1123 wants them.
Status CheckDnsNames(const std::vector<std::string>& names);
Names MakeNames(const std::vector<std::string>& dns_names);
// The DNS names of `names` (null: none), in lower case. kInvalidArgument over a limit.
Result<std::vector<std::string>> DnsNamesOf(const GENERAL_NAMES* names);

// Sets the common name, unless it is too long for one.
bool SetCommonName(X509_NAME* subject, std::string_view name);

}  // namespace optcache::pki
