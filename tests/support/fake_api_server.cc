#include "support/fake_api_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "support/raw_http.h"

namespace optcache::kube {
namespace {

void ParseTarget(const std::string& target, FakeRequest& request) {
  const std::size_t mark = target.find('?');
  request.path = PercentDecoded(target.substr(0, mark));
  if (mark == std::string::npos) return;
  std::istringstream query(target.substr(mark + 1));
  for (std::string pair; std::getline(query, pair, '&');) {
    const std::size_t equals = pair.find('=');
    request.query[PercentDecoded(pair.substr(0, equals))] =
        equals == std::string::npos ? "" : PercentDecoded(pair.substr(equals + 1));
  }
}

// One request from the connection, whose bytes so far are in `buffer`; nothing at its end.
std::optional<FakeRequest> Read(int fd, std::string& buffer) {
  const auto more = [&] {
    std::array<char, 65'536> some{};
    const ssize_t n = ::recv(fd, some.data(), some.size(), 0);
    if (n > 0) buffer.append(some.data(), static_cast<std::size_t>(n));
    return n > 0;
  };
  std::size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  FakeRequest request;
  std::istringstream head(buffer.substr(0, end + 2));
  std::string target;
  std::string line;
  head >> request.method >> target;
  ParseTarget(target, request);
  std::getline(head, line);
  while (std::getline(head, line) && line.size() > 1) {
    const std::size_t colon = line.find(':');
    std::string value = line.substr(colon + 1);
    value.erase(0, value.find_first_not_of(' '));
    value.pop_back();  // \r
    request.headers[Lowercase(line.substr(0, colon))] = value;
  }
  const auto length = request.headers.find("content-length");
  const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer.size() < end + 4 + size) {
    if (!more()) return std::nullopt;
  }
  request.body = buffer.substr(end + 4, size);
  buffer.erase(0, end + 4 + size);
  return request;
}

std::string VerbOf(const FakeRequest& request) {
  const auto target = ParseFakePath(request.path);
  const bool named = target && !target->key.name.empty();
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "apply";
  if (request.method == "DELETE") return "delete";
  if (request.query.contains("watch")) return "watch";
  return named ? "get" : "list";
}

std::string PluralOf(const FakeRequest& request) {
  const auto target = ParseFakePath(request.path);
  return target ? target->collection.substr(target->collection.rfind('/') + 1) : "";
}

bool Matches(const FakeRequest& request, const std::string& verb, const std::string& plural) {
  return (verb.empty() || verb == VerbOf(request)) &&
         (plural.empty() || plural == PluralOf(request));
}

std::string Line(const char* type, const Json& object) {
  return Json({{"type", type}, {"object", object}}).dump() + "\n";
}

// 0: any.
std::pair<UniqueFd, std::uint16_t> Bind(std::uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;  // though connections of before linger
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  if (::bind(fd.get(), generic, size) != 0) return {UniqueFd(), 0};
  CHECK(::getsockname(fd.get(), generic, &size) == 0);
  return {std::move(fd), ntohs(address.sin_port)};
}

// A socket that was bound to a port by number keeps it when it listens no more, so that nobody else
// has it when the server starts again.
std::pair<UniqueFd, std::uint16_t> BindToAPort() {
  for (int tries = 0; tries < 100; ++tries) {
    const std::uint16_t free = Bind(0).second;
    if (auto bound = Bind(free); bound.first.valid()) return bound;
  }
  CHECK(false);
}

}  // namespace

FakeFault TooManyRequests(int retry_after_s) {
  FakeFault fault{.response = FakeError(429, "TooManyRequests", "slow down")};
  if (retry_after_s >= 0) fault.response.headers["Retry-After"] = std::to_string(retry_after_s);
  return fault;
}

FakeApiServer::FakeApiServer() {
  Start();
}

FakeApiServer::~FakeApiServer() {
  Stop();
}

std::string FakeApiServer::url() const {
  return "http://127.0.0.1:" + std::to_string(port_);
}

void FakeApiServer::Start() {
  if (!listener_.valid()) std::tie(listener_, port_) = BindToAPort();
  CHECK(::listen(listener_.get(), 64) == 0);
  {
    const MutexLock lock(mutex_);
    stopping_ = false;
  }
  acceptor_ = std::thread([this] { Accept(); });
}

void FakeApiServer::Stop() {
  std::list<Connection> connections;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    for (const Connection& connection : connections_)
      ::shutdown(connection.fd, SHUT_RDWR);
  }
  changed_.NotifyAll();
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  {
    const MutexLock lock(mutex_);
    connections.swap(connections_);
  }
  for (Connection& connection : connections) {
    connection.thread.join();
    ::close(connection.fd);
  }
}

void FakeApiServer::Accept() {
  for (;;) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int one = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    const MutexLock lock(mutex_);
    if (stopping_) {
      ::close(fd);
      return;
    }
    connections_.push_back({.fd = fd});
    connections_.back().thread = std::thread([this, fd] { Serve(fd); });
  }
}

void FakeApiServer::Serve(int fd) {
  std::string buffer;
  for (;;) {
    auto request = Read(fd, buffer);
    if (!request || !Answer(fd, *request)) break;
  }
  ::shutdown(fd, SHUT_RDWR);
}

std::optional<FakeFault> FakeApiServer::TakeFault(const FakeRequest& request) {
  for (Fault& fault : faults_) {
    if (fault.count == 0 || !Matches(request, fault.verb, fault.plural)) continue;
    if (fault.good > 0) {
      --fault.good;
      continue;
    }
    --fault.count;
    return fault.fault;
  }
  return std::nullopt;
}

bool FakeApiServer::Answer(int fd, const FakeRequest& request) {
  std::optional<FakeFault> fault;
  FakeResponse response;
  const bool watch = VerbOf(request) == "watch";
  {
    const MutexLock lock(mutex_);
    requests_.push_back(request);
    const auto token = request.headers.find("authorization");
    const std::string given = token == request.headers.end() ? "" : token->second;
    if (!token_.empty() && given != "Bearer " + token_) {
      fault = FakeFault{.response = FakeError(401, "Unauthorized", "Unauthorized")};
    } else {
      fault = TakeFault(request);
    }
    const bool carried_out = !fault || fault->kind == FakeFault::Kind::kLoseAnswer;
    if (carried_out && !watch) response = store_.Handle(request);
  }
  changed_.NotifyAll();
  if (!fault) return watch ? Watch(fd, request) : Respond(fd, response);
  switch (fault->kind) {
    case FakeFault::Kind::kRespond:
      return Respond(fd, fault->response);
    case FakeFault::Kind::kStall:
      return WaitForEnd(fd);
    case FakeFault::Kind::kHangUp:
    case FakeFault::Kind::kLoseAnswer:
      break;
  }
  return false;
}

bool FakeApiServer::Respond(int fd, const FakeResponse& response) const {
  const std::string body = response.body.dump();
  std::string head = "HTTP/1.1 " + std::to_string(response.status) +
                     " Status\r\nContent-Type: application/json\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n";
  for (const auto& [name, value] : response.headers)
    head += name + ": " + value + "\r\n";
  return SendAll(fd, head + "\r\n" + body);
}

// Until the client has closed or the server stops. Never true: nothing follows.
bool FakeApiServer::WaitForEnd(int fd) const {
  std::array<char, 4096> ignored{};
  while (::recv(fd, ignored.data(), ignored.size(), 0) > 0) {
  }
  return false;
}

bool FakeApiServer::SendChunk(int fd, const std::string& bytes) {
  std::size_t piece = 0;
  {
    const MutexLock lock(mutex_);
    piece = piece_bytes_ == 0 ? bytes.size() : piece_bytes_;
  }
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    const std::string part = bytes.substr(at, piece);
    std::ostringstream chunk;
    chunk << std::hex << part.size() << "\r\n" << part << "\r\n";
    if (!SendAll(fd, chunk.str())) return false;
  }
  return true;
}

bool FakeApiServer::Watch(int fd, const FakeRequest& request) {
  const std::string from = request.query.at("resourceVersion");
  std::uint64_t version = from.empty() ? 0 : std::stoull(from);
  const auto deadline =
      std::chrono::steady_clock::now() +
      std::chrono::seconds(std::stoul(
          request.query.contains("timeoutSeconds") ? request.query.at("timeoutSeconds") : "1800"));
  std::size_t next_order = 0;
  {
    const MutexLock lock(mutex_);
    if (version < store_.compacted()) {
      return Respond(fd, FakeError(410, "Expired", "too old resource version: " + from));
    }
    next_order = orders_.size();
    ++open_watches_;
  }
  bool open = SendAll(fd,
                      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                      "Transfer-Encoding: chunked\r\n\r\n");
  bool in_order = false;
  while (open) {
    std::string bytes;
    WatchOrder order;
    {
      const MutexLock lock(mutex_);
      if (stopping_) break;
      if (next_order < orders_.size()) {
        order = orders_[next_order++];
      } else if (!mute_) {
        for (const Json& event : store_.EventsAfter(request, version))
          bytes += event.dump() + "\n";
      }
      pollfd hung_up{.fd = fd, .events = POLLRDHUP, .revents = 0};
      if (::poll(&hung_up, 1, 0) > 0) break;
      if (bytes.empty() && order.bytes.empty() && order.kind == WatchOrder::Kind::kSend) {
        if (std::chrono::steady_clock::now() >= deadline) {
          in_order = true;
          break;
        }
        changed_.WaitUntil(mutex_,
                           std::chrono::steady_clock::now() + std::chrono::milliseconds(20));
        continue;
      }
    }
    open = SendChunk(fd, bytes + order.bytes);
    if (order.kind != WatchOrder::Kind::kSend) {
      in_order = order.kind == WatchOrder::Kind::kEnd;
      break;
    }
  }
  {
    const MutexLock lock(mutex_);
    --open_watches_;
  }
  return in_order && SendAll(fd, "0\r\n\r\n");
}

void FakeApiServer::store(const std::function<void(FakeApiStore&)>& use) {
  {
    const MutexLock lock(mutex_);
    use(store_);
  }
  changed_.NotifyAll();
}

Json FakeApiServer::Find(const Resource& resource, const ObjectKey& key) {
  const MutexLock lock(mutex_);
  return store_.Find(resource, key);
}

void FakeApiServer::FailNext(const std::string& verb, const std::string& plural, FakeFault fault,
                             std::size_t count, std::size_t good) {
  const MutexLock lock(mutex_);
  faults_.push_back(
      {.verb = verb, .plural = plural, .fault = std::move(fault), .count = count, .good = good});
}

void FakeApiServer::FailNoMore() {
  const MutexLock lock(mutex_);
  faults_.clear();
}

void FakeApiServer::RequireToken(std::string token) {
  const MutexLock lock(mutex_);
  token_ = std::move(token);
}

void FakeApiServer::Order(WatchOrder order) {
  {
    const MutexLock lock(mutex_);
    orders_.push_back(std::move(order));
  }
  changed_.NotifyAll();
}

void FakeApiServer::BreakWatches() {
  Order({.kind = WatchOrder::Kind::kBreak});
}
void FakeApiServer::EndWatches() {
  Order({.kind = WatchOrder::Kind::kEnd});
}
void FakeApiServer::SendError(const Json& status) {
  Order({.kind = WatchOrder::Kind::kEnd, .bytes = Line("ERROR", status)});
}
void FakeApiServer::SendRaw(const std::string& bytes) {
  Order({.bytes = bytes});
}
void FakeApiServer::SendBookmark() {
  std::string version;
  store([&](FakeApiStore& kept) { version = std::to_string(kept.version()); });
  Order({.bytes = Line("BOOKMARK", {{"metadata", {{"resourceVersion", version}}}})});
}

void FakeApiServer::set_mute(bool mute) {
  const MutexLock lock(mutex_);
  mute_ = mute;
}
void FakeApiServer::set_piece_bytes(std::size_t bytes) {
  const MutexLock lock(mutex_);
  piece_bytes_ = bytes;
}

std::vector<FakeRequest> FakeApiServer::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

std::size_t FakeApiServer::Count(const std::string& verb, const std::string& plural) const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(requests_.begin(), requests_.end(),
                    [&](const FakeRequest& request) { return Matches(request, verb, plural); }));
}

std::size_t FakeApiServer::Writes() const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(requests_.begin(), requests_.end(),
                    [](const FakeRequest& request) { return request.method != "GET"; }));
}

std::size_t FakeApiServer::open_watches() const {
  const MutexLock lock(mutex_);
  return open_watches_;
}

void FakeApiServer::ForgetRequests() {
  const MutexLock lock(mutex_);
  requests_.clear();
}

}  // namespace optcache::kube
