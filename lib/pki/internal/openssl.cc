// Reads and writes OpenSSL's objects as PEM text, with limits and without questions.
//
// The idea: texts come from files and from strangers. Each reader bounds their length, and
// NoPassword turns an encrypted key into an error, where OpenSSL would ask on the terminal. Keys
// are ECDSA on P-256 by name: a curve that is spelled out could be another one that looks alike.
// DNS names are lower case without wildcards when we write them, and are lowered when we read them.
//
// Invariants: OpenSSL's objects are owned by the types of the header from their creation on. After
// a failure that is reported the error queue is empty, so a later message never has an earlier
// reason.

#include "pki/internal/openssl.h"

#include <algorithm>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "base/check.h"

namespace optcache::pki {
namespace {

constexpr std::size_t kMaxLabelBytes = 63;
constexpr std::size_t kMaxCommonNameBytes = 64;  // RFC 5280, ub-common-name

std::string TakeReason() {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "unknown error of OpenSSL" : reason;
}

bool IsLabel(std::string_view label) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !label.empty() && label.size() <= kMaxLabelBytes && label.front() != '-' &&
         label.back() != '-' && std::ranges::all_of(label, fits);
}

bool IsDnsName(std::string_view name) {
  if (name.size() > kMaxDnsNameBytes) return false;
  for (;;) {
    const std::size_t dot = name.find('.');
    if (!IsLabel(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

}  // namespace

Status OpensslStatus(std::string_view doing) {
  return {Code::kInternal, std::string(doing) + ": " + TakeReason()};
}

int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*unused*/) {
  return -1;
}

Result<Bio> Reader(std::string_view pem, std::size_t limit) {
  if (pem.size() > limit) return Error(Bad("the text is longer than " + FormatBytes(limit)));
  ERR_clear_error();
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CHECK(bio != nullptr);
  return bio;
}

Bio Writer() {
  Bio bio(BIO_new(BIO_s_mem()));
  CHECK(bio != nullptr);
  return bio;
}

std::string TextOf(const Bio& writer) {
  std::string text(BIO_ctrl_pending(writer.get()), '\0');
  const int n = BIO_read(writer.get(), text.data(), static_cast<int>(text.size()));
  CHECK(n == static_cast<int>(text.size()));
  return text;
}

Result<Key> ReadPrivateKey(std::string_view pem) {
  ASSIGN_OR_RETURN(const Bio bio, Reader(pem, kMaxPemBytes));
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return Error(Bad("not an unencrypted private key in PEM: " + TakeReason()));
  return key;
}

Result<Key> ReadPublicKey(std::string_view pem) {
  ASSIGN_OR_RETURN(const Bio bio, Reader(pem, kMaxPemBytes));
  Key key(PEM_read_bio_PUBKEY(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return Error(Bad("not a public key in PEM: " + TakeReason()));
  return key;
}

Status CheckKind(const EVP_PKEY* key) {
  std::string group(64, '\0');
  std::size_t length = 0;
  int spelled_out = 0;
  const bool named = EVP_PKEY_is_a(key, "EC") == 1 &&
                     EVP_PKEY_get_group_name(key, group.data(), group.size(), &length) == 1 &&
                     group.substr(0, length) == SN_X9_62_prime256v1 &&
                     EVP_PKEY_get_int_param(key, OSSL_PKEY_PARAM_EC_DECODED_FROM_EXPLICIT_PARAMS,
                                            &spelled_out) == 1 &&
                     spelled_out == 0;
  ERR_clear_error();
  return named ? OkStatus() : Bad("the key is not one for ECDSA on P-256");
}

Result<std::string> PublicKeyPem(EVP_PKEY* key) {
  const Bio bio = Writer();
  if (PEM_write_bio_PUBKEY(bio.get(), key) != 1) return Error(OpensslStatus("write a public key"));
  return TextOf(bio);
}

Result<X509Certificate> ReadCertificate(std::string_view pem) {
  ASSIGN_OR_RETURN(const Bio bio, Reader(pem, kMaxBundleBytes));
  X509Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
  if (certificate == nullptr) return Error(Bad("not a certificate in PEM: " + TakeReason()));
  return certificate;
}

Result<std::string> CertificatePem(X509* certificate) {
  const Bio bio = Writer();
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) {
    return Error(OpensslStatus("write a certificate"));
  }
  return TextOf(bio);
}

Status CheckDnsNames(const std::vector<std::string>& names) {
  if (names.size() > kMaxDnsNames) {
    return Bad("more than " + std::to_string(kMaxDnsNames) + " DNS names");
  }
  for (const std::string& name : names) {
    if (!IsDnsName(name)) {
      return Bad("'" + name.substr(0, kMaxDnsNameBytes) +
                 "' is not a DNS name in lower case without wildcards");
    }
  }
  return OkStatus();
}

Names MakeNames(const std::vector<std::string>& dns_names) {
  Names names(sk_GENERAL_NAME_new_null());
  CHECK(names != nullptr);
  for (const std::string& name : dns_names) {
    ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
    GENERAL_NAME* const one = GENERAL_NAME_new();
    CHECK(text != nullptr && one != nullptr);
    CHECK(ASN1_STRING_set(text, name.data(), static_cast<int>(name.size())) == 1);
    GENERAL_NAME_set0_value(one, GEN_DNS, text);
    CHECK(sk_GENERAL_NAME_push(names.get(), one) > 0);
  }
  return names;
}

Result<std::vector<std::string>> DnsNamesOf(const GENERAL_NAMES* names) {
  std::vector<std::string> result;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS) continue;
    if (result.size() >= kMaxDnsNames) {
      return Error(Bad("more than " + std::to_string(kMaxDnsNames) + " DNS names"));
    }
    const auto* const bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    std::string text(bytes, static_cast<std::size_t>(ASN1_STRING_length(name->d.dNSName)));
    if (text.size() > kMaxDnsNameBytes) return Error(Bad("a DNS name is too long"));
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    result.push_back(std::move(text));
  }
  return result;
}

bool SetCommonName(X509_NAME* subject, std::string_view name) {
  if (name.size() > kMaxCommonNameBytes) return true;
  return X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()),
                                    static_cast<int>(name.size()), -1, 0) == 1;
}

}  // namespace optcache::pki
