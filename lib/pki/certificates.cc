// Makes a CA, signs leaves, and reads what a certificate says.
//
// The idea: a leaf has nothing from outside but a public key and DNS names, which are checked here;
// its extensions are built from our own texts. A leaf is no CA, may only sign handshakes, says what
// it is for, and ends no later than its CA. A CA signs leaves alone (pathlen 0). OpenSSL's calls
// are one chain of conditions, so the first that fails ends it, and its reason becomes the message.
//
// Invariant: a serial number is random, odd and below 2^159, so it is positive, fits in 20 octets
// and is never zero.

#include <array>
#include <ctime>

#include <openssl/bn.h>
#include <openssl/err.h>

#include "base/check.h"
#include "pki/internal/openssl.h"
#include "pki/pki.h"

namespace optcache::pki {
namespace {

constexpr int kSerialBits = 159;  // at most 20 octets, and never negative
constexpr std::size_t kMaxCaNameBytes = 64;

using BigNumber = std::unique_ptr<BIGNUM, Freer<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;

struct FreeText {
  void operator()(void* text) const { CRYPTO_free(text, __FILE__, __LINE__); }
};

std::int64_t UnixSeconds(const ASN1_TIME* time) {
  std::tm when = {};
  return ASN1_TIME_to_tm(time, &when) == 1 ? ::timegm(&when) : 0;
}

std::string Hex(const unsigned char* bytes, std::size_t size) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4U];
    text += kDigits[bytes[i] & 15U];
  }
  return text;
}

bool SetSerial(X509* certificate) {
  const BigNumber serial(BN_new());
  return serial != nullptr &&
         BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ODD) == 1 &&
         BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// `value` is ours: OpenSSL reads it as configuration.
bool Extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context = {};
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_nconf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetValidity(X509* certificate, const Validity& validity) {
  return ASN1_TIME_set(X509_getm_notBefore(certificate), validity.not_before) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), validity.not_after) != nullptr;
}

std::string UsageText(const Usages& usages) {
  std::string text = usages.server ? "serverAuth" : "";
  if (usages.server && usages.client) text += ",";
  if (usages.client) text += "clientAuth";
  return text;
}

// RFC 5280: what names nobody in its subject has to name somebody in its extension.
bool AddNames(X509* certificate, const std::vector<std::string>& dns_names) {
  const bool unnamed = X509_NAME_entry_count(X509_get_subject_name(certificate)) == 0;
  const Names names = MakeNames(dns_names);
  return X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), unnamed ? 1 : 0, 0) == 1;
}

Status CheckLeaf(const Leaf& leaf, const X509* ca) {
  if (leaf.dns_names.empty()) return Bad("a certificate needs a DNS name");
  RETURN_IF_ERROR(CheckDnsNames(leaf.dns_names));
  if (!leaf.usages.server && !leaf.usages.client) return Bad("a certificate needs a usage");
  if (leaf.validity.not_before > leaf.validity.not_after) {
    return Bad("the validity ends before it begins");
  }
  if (leaf.validity.not_after > UnixSeconds(X509_get0_notAfter(ca))) {
    return Bad("the certificate would be valid longer than its CA");
  }
  return OkStatus();
}

std::string CommonName(const X509* certificate) {
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  const ASN1_STRING* const text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
  unsigned char* utf8 = nullptr;
  const int length = ASN1_STRING_to_UTF8(&utf8, text);
  const std::unique_ptr<unsigned char, FreeText> owned(utf8);
  if (length < 0) return "";
  return {reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(length)};
}

std::string SerialOf(const X509* certificate) {
  const BigNumber serial(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  if (serial == nullptr) return "";
  const std::unique_ptr<char, FreeText> text(BN_bn2hex(serial.get()));
  return text == nullptr ? "" : text.get();
}

std::string KeyDigest(const X509* certificate) {
  unsigned char* encoded = nullptr;
  const int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &encoded);
  const std::unique_ptr<unsigned char, FreeText> owned(encoded);
  if (length <= 0) return "";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  unsigned size = 0;
  CHECK(EVP_Digest(encoded, static_cast<std::size_t>(length), digest.data(), &size, EVP_sha256(),
                   nullptr) == 1);
  return Hex(digest.data(), size);
}

}  // namespace

Result<std::string> MakeCa(std::string_view key, std::string_view name, Validity validity) {
  if (name.empty() || name.size() > kMaxCaNameBytes) {
    return Error(Bad("a CA's name has 1 to " + std::to_string(kMaxCaNameBytes) + " bytes"));
  }
  if (validity.not_before > validity.not_after) {
    return Error(Bad("the validity ends before it begins"));
  }
  ASSIGN_OR_RETURN(const Key own, ReadPrivateKey(key));
  const X509Certificate ca(X509_new());
  CHECK(ca != nullptr);
  X509* const made = ca.get();
  const bool good = X509_set_version(made, X509_VERSION_3) == 1 && SetSerial(made) &&
                    SetCommonName(X509_get_subject_name(made), name) &&
                    X509_set_issuer_name(made, X509_get_subject_name(made)) == 1 &&
                    SetValidity(made, validity) && X509_set_pubkey(made, own.get()) == 1 &&
                    Extend(made, made, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    Extend(made, made, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    Extend(made, made, NID_subject_key_identifier, "hash") &&
                    X509_sign(made, own.get(), EVP_sha256()) > 0;
  if (!good) return Error(OpensslStatus("make a CA"));
  return CertificatePem(made);
}

Result<std::string> Sign(std::string_view ca, std::string_view ca_key, const Leaf& leaf) {
  ASSIGN_OR_RETURN(const X509Certificate issuer, ReadCertificate(ca));
  ASSIGN_OR_RETURN(const Key issuer_key, ReadPrivateKey(ca_key));
  if (X509_check_private_key(issuer.get(), issuer_key.get()) != 1) {
    ERR_clear_error();
    return Error(Bad("the CA's key is not that of its certificate"));
  }
  if (X509_check_ca(issuer.get()) != 1) return Error(Bad("the signing certificate is no CA"));
  RETURN_IF_ERROR(CheckLeaf(leaf, issuer.get()));
  ASSIGN_OR_RETURN(const Key subject_key, ReadPublicKey(leaf.public_key));
  RETURN_IF_ERROR(CheckKind(subject_key.get()));
  const X509Certificate signed_leaf(X509_new());
  CHECK(signed_leaf != nullptr);
  X509* const made = signed_leaf.get();
  const bool good =
      X509_set_version(made, X509_VERSION_3) == 1 && SetSerial(made) &&
      SetCommonName(X509_get_subject_name(made), leaf.dns_names.front()) &&
      X509_set_issuer_name(made, X509_get_subject_name(issuer.get())) == 1 &&
      SetValidity(made, leaf.validity) && X509_set_pubkey(made, subject_key.get()) == 1 &&
      Extend(made, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
      Extend(made, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
      Extend(made, issuer.get(), NID_ext_key_usage, UsageText(leaf.usages)) &&
      Extend(made, issuer.get(), NID_subject_key_identifier, "hash") &&
      Extend(made, issuer.get(), NID_authority_key_identifier, "keyid") &&
      AddNames(made, leaf.dns_names) && X509_sign(made, issuer_key.get(), EVP_sha256()) > 0;
  if (!good) return Error(OpensslStatus("sign a certificate"));
  return CertificatePem(made);
}

Result<Certificate> Inspect(std::string_view pem) {
  ASSIGN_OR_RETURN(const X509Certificate read, ReadCertificate(pem));
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(read.get(), NID_subject_alt_name, nullptr, nullptr)));
  const std::uint32_t usage = X509_get_extended_key_usage(read.get());  // all set: unrestricted
  ERR_clear_error();
  ASSIGN_OR_RETURN(auto dns_names, DnsNamesOf(names.get()));
  return Certificate{
      .subject = CommonName(read.get()),
      .dns_names = std::move(dns_names),
      .usages = {.server = (usage & XKU_SSL_SERVER) != 0, .client = (usage & XKU_SSL_CLIENT) != 0},
      .validity = {.not_before = UnixSeconds(X509_get0_notBefore(read.get())),
                   .not_after = UnixSeconds(X509_get0_notAfter(read.get()))},
      .is_ca = X509_check_ca(read.get()) == 1,
      .serial = SerialOf(read.get()),
      .public_key_digest = KeyDigest(read.get())};
}

}  // namespace optcache::pki
