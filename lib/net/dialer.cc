#include "net/dialer.h"

#include <sys/socket.h>

#include <utility>
#include <vector>

#include "net/address.h"
#include "net/internal/event_loop_impl.h"
#include "net/internal/listener.h"
#include "net/internal/socket_connection.h"
#include "wire/frame.h"

namespace optcache::net {
namespace {

using Endpoint = asio::generic::stream_protocol::endpoint;

// One attempt: look up the name, try its addresses in turn, hand the socket to the connection. It
// lives in the handlers of its operations and ends with the connection or the deadline.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(EventLoop& loop, std::shared_ptr<SocketConnection> connection,
          std::shared_ptr<const TlsContext> tls, std::string server_name)
      : connection_(std::move(connection)),
        tls_(std::move(tls)),
        server_name_(std::move(server_name)),
        socket_(ContextOf(loop)),
        resolver_(ContextOf(loop)),
        loop_(loop) {}

  void Begin(const Address& address, Duration deadline) {
    timer_ = loop_.After(deadline, [self = weak_from_this()] {
      if (const auto attempt = self.lock()) attempt->OnDeadline();
    });
    if (address.is_unix()) {
      endpoints_.emplace_back(asio::local::stream_protocol::endpoint(address.path));
      return ConnectNext();
    }
    error_code not_a_number;
    const auto number = asio::ip::make_address(address.host, not_a_number);
    if (!not_a_number) {
      endpoints_.emplace_back(asio::ip::tcp::endpoint(number, address.port));
      return ConnectNext();
    }
    resolver_.async_resolve(address.host, std::to_string(address.port),
                            [self = shared_from_this()](const error_code& error, auto results) {
                              if (error) return self->Fail(error, "look up");
                              for (const auto& entry : results) {
                                self->endpoints_.emplace_back(entry.endpoint());
                              }
                              self->ConnectNext();
                            });
  }

 private:
  void ConnectNext() {
    if (connection_->closed()) return;
    const Endpoint endpoint = endpoints_.at(next_++);
    error_code error;
    socket_.close(error);
    socket_.open(endpoint.protocol(), error);
    if (error) return Fail(error, "open a socket for");
    socket_.async_connect(endpoint, [self = shared_from_this()](const error_code& failed) {
      self->OnConnected(failed);
    });
  }

  void OnConnected(const error_code& error) {
    if (connection_->closed()) return;
    if (error && next_ < endpoints_.size()) return ConnectNext();
    if (error) return Fail(error, "connect to");
    timer_.Cancel();
    ConfigureStream(socket_.native_handle());
    connection_->Start(std::move(socket_), tls_.get(), server_name_);
  }

  void Fail(const error_code& error, const char* doing) {
    timer_.Cancel();
    connection_->Close(
        Status(Code::kUnavailable,
               std::string(doing) + " " + connection_->address() + ": " + error.message()));
  }

  void OnDeadline() {
    connection_->Close(Status(Code::kDeadlineExceeded,
                              "connect to " + connection_->address() + ": no answer in time"));
    error_code ignored;
    resolver_.cancel();
    socket_.close(ignored);
  }

  std::shared_ptr<SocketConnection> connection_;
  std::shared_ptr<const TlsContext> tls_;
  std::string server_name_;
  StreamSocket socket_;
  asio::ip::tcp::resolver resolver_;
  EventLoop& loop_;
  Timer timer_;
  std::vector<Endpoint> endpoints_;
  std::size_t next_ = 0;
};

// The token for Hello, or why there is none.
Status AddToken(const DialOptions& options, const Address& address, wire::Hello& hello) {
  if (!options.token) return OkStatus();
  if (options.tls == nullptr && !address.is_unix()) {
    return {Code::kInvalidArgument, "a token is not sent in plaintext; dial with TLS"};
  }
  ASSIGN_OR_RETURN(hello.token, options.token());
  if (hello.token.size() > wire::kMaxStringBytes) {
    return {Code::kInvalidArgument, "the token has " + std::to_string(hello.token.size()) +
                                        " bytes; the limit is " +
                                        std::to_string(wire::kMaxStringBytes)};
  }
  return OkStatus();
}

}  // namespace

std::shared_ptr<Connection> Dial(EventLoop& loop, const std::string& address, DialOptions options,
                                 std::shared_ptr<ConnectionHandler> handler) {
  auto parsed = ParseAddress(address);
  wire::Hello hello = options.hello;
  hello.bulk = options.bulk && options.tls != nullptr && hello.role == wire::Role::kSidecar;
  Status status = parsed ? AddToken(options, *parsed, hello) : parsed.error();
  auto connection = SocketConnection::Dialing(loop,
                                              {.limits = options.limits,
                                               .handshake_deadline = options.welcome_deadline,
                                               .bulk = hello.bulk,
                                               .counters = std::move(options.counters),
                                               .tls_failures = std::move(options.tls_failures)},
                                              address, hello, std::move(handler));
  if (!status.ok()) {
    connection->Close(std::move(status));
  } else {
    std::make_shared<Attempt>(loop, connection, std::move(options.tls),
                              std::move(options.server_name))
        ->Begin(*parsed, options.connect_deadline);
  }
  return connection;
}

}  // namespace optcache::net
