// Makes HTTP requests by cpprestsdk, and keeps all of it on its one thread.
//
// The idea: cpprestsdk's objects are not safe for two threads, so everything that touches them is
// posted to its pool, which has one thread: Start, Resume and Cancel too. An Exchange lives in the
// continuations of its call. Response bytes go through a BodySink, whose task is not done before
// the listener wants more: that is how a slow listener stops the reading. Exceptions end in Guard,
// which turns them into one Status.
//
// Invariants: OnEnd comes once (End takes the listener away), and OnHead comes before any bytes,
// although cpprestsdk may bring them the other way round (OnHead hands over what waited). This file
// sends a request again only once, only before an answer, and only if doing it twice does no harm.
// Connections to a server all have the same TLS material: other material makes new ones.

#include "net/internal/rest_client.h"

#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <openssl/err.h>

#if defined(__clang__)
// cpprestsdk holds a unique_ptr to a type that it defines later. clang 19 instantiates the deleter
// at once, as unique_ptr is constexpr in C++23; so it is told here what that will be.
namespace web::json::details {
class _Value;  // NOLINT(bugprone-reserved-identifier): cpprestsdk's name
}
template <>
struct std::default_delete<web::json::details::_Value> {
  default_delete() = default;
  template <typename Derived>
  explicit(false) default_delete(const default_delete<Derived>& /*other*/) noexcept {}
  void operator()(web::json::details::_Value* value) const;
};
#endif

#include <cpprest/astreambuf.h>
#include <cpprest/http_client.h>
#include <cpprest/rawptrstream.h>
#include <cpprest/streams.h>
#include <pplx/threadpool.h>

#include "net/internal/tls_impl.h"

#if defined(__clang__)
void std::default_delete<web::json::details::_Value>::operator()(
    web::json::details::_Value* value) const {
  delete value;
}
#endif

namespace optcache::net {
namespace {

namespace rest = web::http;

constexpr std::size_t kMaxServers = 64;  // whose connections are kept
// Of cpprestsdk itself; the caller's deadlines come first.
constexpr auto kLongestRequest = std::chrono::hours(1);

void OnRestThread(std::function<void()> work) {
  static const bool one_thread = [] {
    crossplat::threadpool::initialize_with_threads(1);
    return true;
  }();
  (void)one_thread;
  crossplat::threadpool::shared_instance().service().post(std::move(work));
}

// --- TLS ----------------------------------------------------------------------------------------

// Why a server's certificate was refused, which cpprestsdk does not tell.
struct Verdict {
  std::string refusal;
};

// NOLINTNEXTLINE(google-runtime-int): OpenSSL's type
void FreeVerdict(void* /*parent*/, void* verdict, CRYPTO_EX_DATA* /*data*/, int /*index*/,
                 long /*argl*/, void* /*argp*/) {
  delete static_cast<std::shared_ptr<Verdict>*>(verdict);
}

int VerdictIndex() {
  static const int index =
      CRYPTO_get_ex_new_index(CRYPTO_EX_INDEX_SSL_CTX, 0, nullptr, nullptr, nullptr, FreeVerdict);
  return index;
}

int VerifyAndTell(X509_STORE_CTX* store, void* verdict) {
  const int good = X509_verify_cert(store);
  if (good != 1) {
    static_cast<Verdict*>(verdict)->refusal =
        X509_verify_cert_error_string(X509_STORE_CTX_get_error(store));
  }
  return good;
}

// Throws, as cpprestsdk expects of who sets up its connections.
void SetUpTls(SSL_CTX* context, const TlsMaterial* material, const std::string& server_name,
              const std::shared_ptr<Verdict>& verdict) {
  Status status;
  if (material != nullptr) {
    status = ConfigureTls(context, *material, TlsRole::kClient, ClientCertificate::kNone);
  }
  if (!status.ok() || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      !ExpectServerName(context, server_name)) {
    throw std::runtime_error("TLS cannot be set up: " + status.message());
  }
  // OpenSSL's context may outlive everything else here, so it owns the verdict, too.
  SSL_CTX_set_ex_data(context, VerdictIndex(), new std::shared_ptr<Verdict>(verdict));
  SSL_CTX_set_cert_verify_callback(context, VerifyAndTell, verdict.get());
}

// --- Errors -------------------------------------------------------------------------------------

Status ToStatus(const rest::http_exception& error, const Verdict& verdict) {
  const std::string text = error.what();
  if (!verdict.refusal.empty() && text.find("SSL handshake") != std::string::npos) {
    return {Code::kPermissionDenied,
            "the server's certificate is not to be trusted: " + verdict.refusal};
  }
  // OpenSSL's errors come packed into the code. An alert of the server may come at any time.
  const auto code = static_cast<unsigned>(error.error_code().value());
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return {Code::kUnavailable, text};
  const char* const reason = ERR_reason_error_string(code);
  if (reason == nullptr) return {Code::kUnavailable, text};
  if (ERR_GET_REASON(code) >= SSL_AD_REASON_OFFSET) {
    return {Code::kPermissionDenied, std::string("the server refused the connection: ") + reason};
  }
  return {Code::kUnavailable, text + ": " + reason};
}

bool IsIdempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

// A kept connection that the server had closed shows when the request is written to it. (When it
// shows as the answer is awaited, cpprestsdk sends again by itself.)
bool IsStaleConnection(const rest::http_exception& error) {
  return std::string_view(error.what()).starts_with("Failed to write request");
}

bool IsBracketed(const std::string& host) {
  return host.starts_with('[') && host.ends_with(']');
}

// Scheme, host and port. cpprestsdk looks up what stands there, brackets of an IPv6 address and
// all, so it gets the address without.
web::uri BaseOf(const web::uri& uri) {
  web::uri_builder base(uri.authority());
  const std::string host = uri.host();
  if (IsBracketed(host)) base.set_host(host.substr(1, host.size() - 2));
  return base.to_uri();
}

rest::http_request ToRequest(const RestCall& call, const web::uri& uri) {
  const HttpRequest& from = call.request;
  rest::http_request request(from.method);
  request.set_request_uri(uri.resource());
  for (const auto& [name, value] : from.headers)
    request.headers().add(name, value);
  // cpprestsdk takes SNI and the name to check from it, so it has no port.
  if (!call.server_name.empty()) {
    request.headers()["Host"] = call.server_name;
  } else if (uri.scheme() == "http" && IsBracketed(uri.host())) {
    request.headers()["Host"] = uri.host() + ":" + std::to_string(uri.port());
  }
  const std::string type(
      FindHeader(from.headers, "Content-Type").value_or("application/octet-stream"));
  if (!from.body.empty()) {
    request.set_body(from.body, type);
  } else if (!from.shared_body.empty()) {
    // The call keeps the bytes for as long as it is under way.
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from.shared_body.data());
    request.set_body(concurrency::streams::rawptr_stream<std::uint8_t>::open_istream(
                         bytes, from.shared_body.size()),
                     from.shared_body.size(), type);
  }
  return request;
}

// --- The body -----------------------------------------------------------------------------------

// Gives what cpprestsdk writes to a function, whose task says when to go on.
class BodySink final : public concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  using Taker = std::function<pplx::task<std::size_t>(std::string_view)>;
  explicit BodySink(Taker take)
      : streambuf_state_manager(std::ios_base::out), take_(std::move(take)) {}

  // What these two do by themselves waits for other work on the thread that they block.
  pplx::task<std::size_t> putn_nocopy(const std::uint8_t* bytes, std::size_t count) override {
    return take_({reinterpret_cast<const char*>(bytes), count});
  }
  pplx::task<void> close(std::ios_base::openmode /*mode*/) override {
    m_stream_can_write = false;
    return pplx::task_from_result();
  }
  pplx::task<void> close(std::ios_base::openmode mode, std::exception_ptr error) override {
    m_currentException = std::move(error);
    return close(mode);
  }

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode /*direction*/) const override { return 0; }
  void set_buffer_size(std::size_t /*size*/, std::ios_base::openmode /*direction*/) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode /*direction*/) const override { return kNowhere; }
  pos_type seekpos(pos_type /*position*/, std::ios_base::openmode /*direction*/) override {
    return kNowhere;
  }
  pos_type seekoff(off_type /*offset*/, std::ios_base::seekdir /*way*/,
                   std::ios_base::openmode /*mode*/) override {
    return kNowhere;
  }
  bool acquire(std::uint8_t*& /*block*/, std::size_t& /*count*/) override { return false; }
  void release(std::uint8_t* /*block*/, std::size_t /*count*/) override {}

 protected:
  using streambuf_state_manager::_putn;
  pplx::task<std::size_t> _putn(const std::uint8_t* bytes, std::size_t count) override {
    return putn_nocopy(bytes, count);
  }
  pplx::task<int_type> _putc(std::uint8_t byte) override {
    const char text = static_cast<char>(byte);
    return take_({&text, 1}).then([byte](std::size_t) { return int_type{byte}; });
  }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t /*count*/) override { return nullptr; }
  void _commit(std::size_t /*count*/) override {}

  // It is only written to.
  pplx::task<int_type> _bumpc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return pplx::task_from_result(traits::eof()); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return pplx::task_from_result(traits::eof()); }
  pplx::task<int_type> _ungetc() override { return pplx::task_from_result(traits::eof()); }
  pplx::task<std::size_t> _getn(std::uint8_t* /*to*/, std::size_t /*count*/) override {
    return pplx::task_from_result(std::size_t{0});
  }
  std::size_t _scopy(std::uint8_t* /*to*/, std::size_t /*count*/) override { return 0; }

 private:
  static constexpr off_type kNowhere = -1;
  const Taker take_;
};

// --- One call -----------------------------------------------------------------------------------

// A server's connections, which are all made with the same certificates.
struct KeptServer {
  rest::client::http_client client;
  std::shared_ptr<const TlsMaterial> material;
  std::shared_ptr<Verdict> verdict;
};

// Lives in the handlers of what is under way. On cpprestsdk's thread, but for Resume and Cancel.
class Exchange final : public RestExchange, public std::enable_shared_from_this<Exchange> {
 public:
  using FindServer = std::function<KeptServer(const web::uri&, const RestCall&)>;

  Exchange(RestCall call, std::shared_ptr<RestListener> listener, FindServer find_server)
      : call_(std::move(call)),
        listener_(std::move(listener)),
        find_server_(std::move(find_server)) {}

  void Resume() override {
    OnRestThread([self = shared_from_this()] { self->EndWait(); });
  }
  void Cancel() override {
    OnRestThread([self = shared_from_this()] { self->Stop(); });
  }

  void Begin();

 private:
  // What cpprestsdk waits for before it reads on.
  struct Wait {
    pplx::task_completion_event<std::size_t> event;
    std::string_view bytes;  // they live as long as the wait
  };

  pplx::task<std::size_t> Take(std::string_view bytes);
  pplx::task<std::size_t> Hand(std::string_view bytes);
  pplx::task<std::size_t> AwaitResume(std::string_view bytes);
  void OnHead(const rest::http_response& response);
  // Runs `step`; what it throws ends the call.
  void Guard(const std::function<void()>& step);
  void EndWait();
  void Stop();
  void End(Status status);

  const RestCall call_;
  std::shared_ptr<RestListener> listener_;  // null: the call has ended
  const FindServer find_server_;
  std::shared_ptr<Verdict> verdict_ = std::make_shared<Verdict>();  // the server's
  pplx::cancellation_token_source cancellation_;
  bool head_seen_ = false;
  bool sent_again_ = false;
  bool stopped_ = false;
  std::optional<Wait> wait_;
};

void Exchange::Guard(const std::function<void()>& step) {
  try {
    step();
  } catch (const pplx::task_canceled&) {
    End({Code::kCancelled, "the request was cancelled"});
  } catch (const web::uri_exception&) {
    End({Code::kInvalidArgument, "not a URL"});
  } catch (const rest::http_exception& error) {
    const bool again = !head_seen_ && !sent_again_ && !stopped_ && IsStaleConnection(error) &&
                       IsIdempotent(call_.request.method);
    if (!again) return End(ToStatus(error, *verdict_));
    sent_again_ = true;
    OnRestThread([self = shared_from_this()] { self->Begin(); });
  } catch (const std::exception& error) {
    End({Code::kUnavailable, error.what()});
  }
}

void Exchange::Begin() {
  if (stopped_) return End({Code::kCancelled, "the request was cancelled"});
  Guard([this] {
    const web::uri uri(call_.request.url);
    if (uri.host().empty() || (uri.scheme() != "http" && uri.scheme() != "https")) {
      return End({Code::kInvalidArgument, "not an http:// or https:// URL"});
    }
    KeptServer server = find_server_(uri, call_);
    verdict_ = server.verdict;
    verdict_->refusal.clear();
    rest::http_request request = ToRequest(call_, uri);
    const auto sink = std::make_shared<BodySink>(
        [self = shared_from_this()](std::string_view bytes) { return self->Take(bytes); });
    request.set_response_stream(
        concurrency::streams::ostream(concurrency::streams::streambuf<std::uint8_t>(sink)));
    // Each continuation takes the task, so that no exception stays unobserved.
    server.client.request(request, cancellation_.get_token())
        .then([self = shared_from_this()](const pplx::task<rest::http_response>& head) {
          self->Guard([&] { self->OnHead(head.get()); });
        });
  });
}

void Exchange::OnHead(const rest::http_response& response) {
  HttpHeaders headers;
  for (const auto& [name, value] : response.headers())
    headers.emplace_back(name, value);
  head_seen_ = true;
  if (listener_ != nullptr) listener_->OnHead(response.status_code(), std::move(headers));
  response.content_ready().then(
      [self = shared_from_this()](const pplx::task<rest::http_response>& whole) {
        self->Guard([&] {
          whole.get();
          self->End(OkStatus());
        });
      });
  // The body may have been faster than the news of its head.
  if (!wait_) return;
  const Wait wait = *std::exchange(wait_, std::nullopt);
  Hand(wait.bytes).then([wait](const pplx::task<std::size_t>& handed) {
    try {
      wait.event.set(handed.get());
    } catch (...) {
      wait.event.set_exception(std::current_exception());
    }
  });
}

pplx::task<std::size_t> Exchange::Take(std::string_view bytes) {
  return head_seen_ ? Hand(bytes) : AwaitResume(bytes);
}

pplx::task<std::size_t> Exchange::Hand(std::string_view bytes) {
  if (listener_ != nullptr && !stopped_) {
    switch (listener_->OnBytes(bytes)) {
      case RestListener::Next::kGoOn:
        return pplx::task_from_result(bytes.size());
      case RestListener::Next::kWait:
        return AwaitResume(bytes);
      case RestListener::Next::kStop:
        break;
    }
  }
  return pplx::task_from_exception<std::size_t>(pplx::task_canceled());
}

pplx::task<std::size_t> Exchange::AwaitResume(std::string_view bytes) {
  wait_ = Wait{.event = {}, .bytes = bytes};
  return pplx::create_task(wait_->event);
}

void Exchange::EndWait() {
  if (!wait_ || !head_seen_) return;
  const Wait wait = *std::exchange(wait_, std::nullopt);
  wait.event.set(wait.bytes.size());
}

void Exchange::Stop() {
  if (stopped_ || listener_ == nullptr) return;
  stopped_ = true;
  cancellation_.cancel();
  if (!wait_) return;
  const Wait wait = *std::exchange(wait_, std::nullopt);
  wait.event.set_exception(pplx::task_canceled());
}

void Exchange::End(Status status) {
  const auto listener = std::exchange(listener_, nullptr);
  if (listener == nullptr) return;
  if (stopped_ && !status.ok()) status = Status(Code::kCancelled, "the request was cancelled");
  listener->OnEnd(std::move(status));
}

}  // namespace

class RestClient::Servers {
 public:
  KeptServer Find(const web::uri& uri, const RestCall& call) {
    const std::string name = uri.authority().to_string();
    const auto found = servers_.find(name);
    if (found != servers_.end()) {
      if (found->second.material == call.material) return found->second;
      servers_.erase(found);  // What is under way on its connections goes on.
    }
    if (servers_.size() >= kMaxServers) servers_.erase(servers_.begin());
    return servers_.emplace(name, Connect(uri, call)).first->second;
  }

 private:
  static KeptServer Connect(const web::uri& uri, const RestCall& call) {
    const auto verdict = std::make_shared<Verdict>();
    rest::client::http_client_config config;
    config.set_timeout(kLongestRequest);
    config.set_max_redirects(0);
    const web::uri base = BaseOf(uri);
    if (uri.scheme() == "https") {
      const std::string name = call.server_name.empty() ? base.host() : call.server_name;
      config.set_tlsext_sni_enabled(!IsIpAddress(name));
      config.set_ssl_context_callback(
          [material = call.material, name, verdict](boost::asio::ssl::context& context) {
            SetUpTls(context.native_handle(), material.get(), name, verdict);
          });
    }
    return {.client = rest::client::http_client(base, config),
            .material = call.material,
            .verdict = verdict};
  }

  std::map<std::string, KeptServer> servers_;
};

RestClient::RestClient() : servers_(std::make_shared<Servers>()) {}

RestClient::~RestClient() {
  OnRestThread([servers = std::move(servers_)] {});
}

std::shared_ptr<RestExchange> RestClient::Start(RestCall call,
                                                std::shared_ptr<RestListener> listener) {
  auto exchange =
      std::make_shared<Exchange>(std::move(call), std::move(listener),
                                 [servers = servers_](const web::uri& uri, const RestCall& wanted) {
                                   return servers->Find(uri, wanted);
                                 });
  OnRestThread([exchange] { exchange->Begin(); });
  return exchange;
}

}  // namespace optcache::net
