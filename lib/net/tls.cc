// Makes OpenSSL's contexts of certificates, keys and trust, and explains its errors.
//
// The idea: material is replaced as a whole. Replace builds a fresh context, and only if all of it
// is good does it take the old one's place; connections keep the context with which they began. The
// choices are in ConfigureTls: TLS 1.2 with forward secrecy or 1.3, no resumption, no
// renegotiation, and no buffers for idle connections. A CA bundle's certificates are trusted as
// they are listed, intermediates too.
//
// Names are checked by OpenSSL itself during the handshake (ExpectServerName), and an empty name is
// an error, because OpenSSL would take it for "check nothing". HTTP/2 is not offered: ALPN agrees
// on http/1.1 or on nothing.

#include "net/tls.h"

#include <arpa/inet.h>

#include <ctime>
#include <vector>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/bytes.h"
#include "base/check.h"
#include "net/internal/tls_impl.h"

namespace optcache::net {
namespace {

constexpr ByteCount kMaxPemBytes = 1_MiB;
constexpr std::size_t kMaxCertificates = 1024;
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";  // of TLS 1.2

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;

std::string LastError() {
  const auto code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "unknown error of OpenSSL" : reason;
}

Status Bad(std::string_view what, std::string why) {
  return {Code::kInvalidArgument, std::string(what) + ": " + std::move(why)};
}

// An encrypted key is an error, not a question on the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*unused*/) {
  return -1;
}

Result<std::vector<Certificate>> ReadCertificates(std::string_view pem, std::string_view what) {
  if (pem.size() > kMaxPemBytes) {
    return Error(Bad(what, "longer than " + FormatBytes(kMaxPemBytes)));
  }
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<Certificate> certificates;
  ERR_clear_error();
  while (X509* const one = PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr)) {
    certificates.emplace_back(one);
    if (certificates.size() > kMaxCertificates) {
      return Error(Bad(what, "more than " + std::to_string(kMaxCertificates) + " certificates"));
    }
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return Error(Bad(what, "not PEM after " + std::to_string(certificates.size()) +
                               " certificates: " + LastError()));
  }
  ERR_clear_error();
  return certificates;
}

Status UseOwnCertificate(SSL_CTX* context, const TlsMaterial& material) {
  ASSIGN_OR_RETURN(const auto chain, ReadCertificates(material.chain, "own certificate"));
  if (chain.empty()) return Bad("own certificate", "there is none in the text");
  if (SSL_CTX_use_certificate(context, chain.front().get()) != 1) {
    return Bad("own certificate", LastError());
  }
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context, chain[i].get()) != 1) {
      return Bad("own certificate", LastError());
    }
  }
  if (material.key.size() > kMaxPemBytes) {
    return Bad("own key", "longer than " + FormatBytes(kMaxPemBytes));
  }
  const Bio bio(BIO_new_mem_buf(material.key.data(), static_cast<int>(material.key.size())));
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  if (key == nullptr) return Bad("own key", "not an unencrypted key in PEM: " + LastError());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    return Bad("own key", "it is not the key of the certificate: " + LastError());
  }
  return OkStatus();
}

// What is listed is trusted, also if it is an intermediate or stands for itself.
Status UseTrust(SSL_CTX* context, const std::string& trust) {
  ASSIGN_OR_RETURN(const auto bundle, ReadCertificates(trust, "CA bundle"));
  if (bundle.empty()) return Bad("CA bundle", "there is no certificate in the text");
  Store store(X509_STORE_new());
  CHECK(store != nullptr);
  for (const Certificate& one : bundle) {
    if (X509_STORE_add_cert(store.get(), one.get()) != 1) return Bad("CA bundle", LastError());
  }
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  SSL_CTX_set_cert_store(context, store.release());
  return OkStatus();
}

// "http/1.1" if the client speaks it, and else no agreement: a client that speaks HTTP/2 alone
// goes.
int SelectProtocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_length,
                   const unsigned char* in, unsigned in_length, void* /*unused*/) {
  static constexpr std::string_view kHttp = "http/1.1";
  for (unsigned at = 0; at + 1 + in[at] <= in_length; at += 1U + in[at]) {
    if (AsText(std::as_bytes(std::span(in + at + 1, in[at]))) != kHttp) continue;
    *out = in + at + 1;
    *out_length = in[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

int VerifyMode(TlsRole role, ClientCertificate client_certificate) {
  if (role == TlsRole::kClient) return SSL_VERIFY_PEER;
  switch (client_certificate) {
    case ClientCertificate::kNone:
      return SSL_VERIFY_NONE;
    case ClientCertificate::kRequested:
      return SSL_VERIFY_PEER;
    case ClientCertificate::kRequired:
      return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  }
  return SSL_VERIFY_NONE;
}

bool Expect(X509_VERIFY_PARAM* param, const std::string& name) {
  if (name.empty()) return false;  // OpenSSL would check nothing.
  if (IsIpAddress(name)) return X509_VERIFY_PARAM_set1_ip_asc(param, name.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(
      param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return X509_VERIFY_PARAM_set1_host(param, name.c_str(), name.size()) == 1;
}

// SSL_set_tlsext_host_name is a macro with an old-style cast.
bool SetServerNameIndication(SSL* ssl, std::string name) {
  return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data()) == 1;
}

}  // namespace

double ExpiryOf(const X509* certificate) {
  std::tm when = {};
  const bool told =
      certificate != nullptr && ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &when) == 1;
  return told ? static_cast<double>(::timegm(&when)) : 0;
}

Status ConfigureTls(SSL_CTX* context, const TlsMaterial& material, TlsRole role,
                    ClientCertificate client_certificate) {
  const bool server = role == TlsRole::kServer;
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context, kCiphers) != 1) {
    return {Code::kInternal, "TLS: " + LastError()};
  }
  // Messages have lengths of their own, so the end of the socket needs no further proof.
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // A node has a connection from and to each other one, most of them idle: those keep no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  if (server || !material.chain.empty()) RETURN_IF_ERROR(UseOwnCertificate(context, material));
  if (!server || client_certificate != ClientCertificate::kNone) {
    RETURN_IF_ERROR(UseTrust(context, material.trust));
  }
  SSL_CTX_set_verify(context, VerifyMode(role, client_certificate), nullptr);
  if (server) {
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_alpn_select_cb(context, SelectProtocol, nullptr);
  }
  return OkStatus();
}

bool IsIpAddress(const std::string& name) {
  in6_addr ignored = {};
  return ::inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
         ::inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
}

bool ExpectServerName(SSL* ssl, const std::string& name) {
  if (!Expect(SSL_get0_param(ssl), name)) return false;
  return IsIpAddress(name) || SetServerNameIndication(ssl, name);
}

bool ExpectServerName(SSL_CTX* context, const std::string& name) {
  return Expect(SSL_CTX_get0_param(context), name);
}

HandshakeFailure ClassifyHandshake(std::uint64_t code, std::int64_t verify_result) {
  if (code == 0) return HandshakeFailure::kGone;
  const int reason = ERR_GET_REASON(code);
  switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return HandshakeFailure::kNoCertificate;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      return verify_result == X509_V_ERR_HOSTNAME_MISMATCH ||
                     verify_result == X509_V_ERR_IP_ADDRESS_MISMATCH
                 ? HandshakeFailure::kWrongName
                 : HandshakeFailure::kUntrusted;
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNKNOWN_PROTOCOL:
    case SSL_R_BAD_RECORD_TYPE:
      return HandshakeFailure::kNotTls;
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      return HandshakeFailure::kGone;
    default:
      return reason >= SSL_AD_REASON_OFFSET ? HandshakeFailure::kRejected
                                            : HandshakeFailure::kProtocol;
  }
}

std::string ExplainHandshake(std::uint64_t code, std::int64_t verify_result) {
  if (code == 0) return "the peer closed the connection during the TLS handshake";
  const char* const reason = ERR_reason_error_string(code);
  std::string text = reason == nullptr ? "TLS handshake failed" : reason;
  if (ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    text += std::string(": ") + X509_verify_cert_error_string(verify_result);
  }
  return text;
}

TlsContext::TlsContext(TlsRole role, ClientCertificate client_certificate)
    : role_(role), impl_(std::make_unique<Impl>()) {
  impl_->client_certificate = client_certificate;
}

TlsContext::~TlsContext() = default;

Status TlsContext::Replace(TlsMaterial material) {
  decltype(impl_->ssl) fresh(
      SSL_CTX_new(role_ == TlsRole::kServer ? TLS_server_method() : TLS_client_method()));
  CHECK(fresh != nullptr);
  RETURN_IF_ERROR(ConfigureTls(fresh.get(), material, role_, impl_->client_certificate));
  expires_at_ = ExpiryOf(SSL_CTX_get0_certificate(fresh.get()));
  impl_->ssl = std::move(fresh);
  material_ = std::make_shared<const TlsMaterial>(std::move(material));
  return OkStatus();
}

std::string_view HandshakeFailureName(HandshakeFailure failure) {
  switch (failure) {
    case HandshakeFailure::kTimeout:
      return "timeout";
    case HandshakeFailure::kNotReady:
      return "not_ready";
    case HandshakeFailure::kNoCertificate:
      return "no_certificate";
    case HandshakeFailure::kUntrusted:
      return "untrusted";
    case HandshakeFailure::kWrongName:
      return "wrong_name";
    case HandshakeFailure::kRejected:
      return "rejected";
    case HandshakeFailure::kNotTls:
      return "not_tls";
    case HandshakeFailure::kProtocol:
      return "protocol";
    case HandshakeFailure::kGone:
      return "gone";
  }
  return "unknown";
}

void HandshakeFailures::Visit(const CounterVisitor& visitor, const MetricLabels& labels) const {
  for (std::size_t i = 0; i < kKinds; ++i) {
    MetricLabels with_reason = labels;
    with_reason.emplace_back("reason", HandshakeFailureName(static_cast<HandshakeFailure>(i)));
    visitor(MetricKind::kCounter, "optcache_tls_handshake_failures_total", with_reason,
            static_cast<double>(counts.at(i)));
  }
}

}  // namespace optcache::net
