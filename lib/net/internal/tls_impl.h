#pragma once

// TLS as OpenSSL knows it. For the .cc files of net.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "base/status.h"
#include "net/tls.h"

namespace optcache::net {

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

class TlsContext::Impl {
 public:
  std::unique_ptr<SSL_CTX, FreeSslContext> ssl;  // null: no material yet
  ClientCertificate client_certificate = ClientCertificate::kNone;
};

// Puts versions, ciphers, certificate and trust into a fresh `context`. Errors as in
// TlsContext::Replace. Thread-safe.
Status ConfigureTls(SSL_CTX* context, const TlsMaterial& material, TlsRole role,
                    ClientCertificate client_certificate);

// From now on the server's certificate must be for `name`, a DNS name or an IP address; a DNS name
// is also told to the server (SNI). False if OpenSSL does not take it.
bool ExpectServerName(SSL* ssl, const std::string& name);
// The check alone, for what is made of `context`.
bool ExpectServerName(SSL_CTX* context, const std::string& name);

// When it expires, in Unix seconds; 0: it is null.
double ExpiryOf(const X509* certificate);

bool IsIpAddress(const std::string& name);

// What OpenSSL's error `code` (ERR_get_error) says about a handshake; `verify_result` as in
// SSL_get_verify_result.
HandshakeFailure ClassifyHandshake(std::uint64_t code, std::int64_t verify_result);

// "certificate verify failed: certificate has expired": the same for people.
std::string ExplainHandshake(std::uint64_t code, std::int64_t verify_result);

}  // namespace optcache::net
