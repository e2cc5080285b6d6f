#pragma once

// Keys, requests and certificates, as PEM text in and out: what a small certificate authority and
// its clients need. ECDSA on P-256 throughout. No file, no clock; chance comes from OpenSSL.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace optcache::pki {

// What is read has limits; beyond them kInvalidArgument.
inline constexpr std::size_t kMaxPemBytes = 64U << 10U;
inline constexpr std::size_t kMaxBundleBytes = 1U << 20U;
inline constexpr std::size_t kMaxCertificates = 64;  // in a bundle
inline constexpr std::size_t kMaxDnsNames = 16;
inline constexpr std::size_t kMaxDnsNameBytes = 253;

// In Unix seconds, both inclusive.
struct Validity {
  std::int64_t not_before = 0;
  std::int64_t not_after = 0;
  friend bool operator==(const Validity&, const Validity&) = default;
};

struct Usages {
  bool server = false;  // TLS server
  bool client = false;  // TLS client
  friend bool operator==(const Usages&, const Usages&) = default;
};

// A new private key (PKCS #8, not encrypted).
Result<std::string> MakeKey();

// A self-signed CA certificate of `key` that may sign leaves and no further CAs. `name`: its common
// name. Its serial number is random.
Result<std::string> MakeCa(std::string_view key, std::string_view name, Validity validity);

// A certificate signing request (PKCS #10) of `key` for `dns_names`, signed by it.
Result<std::string> MakeRequest(std::string_view key, const std::vector<std::string>& dns_names);

// What a request asks for. Who signs decides what of it to grant.
struct Request {
  std::string public_key;              // PEM
  std::vector<std::string> dns_names;  // lower case
};

// kInvalidArgument: not a request, over a limit, a key that is not ECDSA P-256, or a signature that
// does not prove the possession of the key. Meant for bytes from strangers.
Result<Request> ParseRequest(std::string_view pem);

struct Leaf {
  std::string public_key;              // PEM, as in Request or from PublicKeyOf
  std::vector<std::string> dns_names;  // at least one
  Usages usages;
  Validity validity;
};

// Signs a leaf and returns its certificate, without the CA's. The serial number is random (RFC
// 5280: 20 octets at most). kInvalidArgument: `ca_key` is not the key of `ca`, `ca` is no CA, a
// name is not a DNS name, no usage, or a validity that ends before it begins or after that of `ca`.
Result<std::string> Sign(std::string_view ca, std::string_view ca_key, const Leaf& leaf);

// The public half of a private key.
Result<std::string> PublicKeyOf(std::string_view key);

struct Certificate {
  std::string subject;  // common name
  std::vector<std::string> dns_names;
  Usages usages;
  Validity validity;
  bool is_ca = false;
  std::string serial;  // hexadecimal
  std::string
      public_key_digest;  // SHA-256 of the SubjectPublicKeyInfo, hexadecimal: same key, same digest
};

// The first certificate of `pem`.
Result<Certificate> Inspect(std::string_view pem);

// The certificates of a bundle one by one, each as PEM of its own. None is an empty list; text
// between them is ignored. kInvalidArgument: something that begins as a certificate is none.
Result<std::vector<std::string>> SplitBundle(std::string_view bundle);

// One text of all of them, without doubles, in order.
std::string JoinBundle(const std::vector<std::string>& certificates);

// Is `key` the private key of the first certificate of `certificate`? An error says in what way
// not.
Status KeyMatches(std::string_view key, std::string_view certificate);

// Was the first certificate of `leaf` signed by one of `bundle`, and is it valid at `unix_seconds`
// for `usages`? kPermissionDenied says why not.
Status Verify(std::string_view leaf, std::string_view bundle, std::int64_t unix_seconds,
              Usages usages);

}  // namespace optcache::pki
