#include "support/scripted_http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include "base/check.h"
#include "support/raw_http.h"

namespace optcache {
namespace {

constexpr auto kWaitMax = std::chrono::minutes(1);
constexpr size_t kHeadBytesMax = 64 << 10;

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find("\r\n");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  return line;
}

bool ReadMore(int fd, std::string& buffer) {
  char piece[4096];
  const ssize_t n = ::recv(fd, piece, sizeof(piece), 0);
  if (n <= 0) return false;
  buffer.append(piece, static_cast<size_t>(n));
  return true;
}

// Reads a request's head and as much body as it announces; bytes beyond stay in `buffer`.
std::optional<RecordedRequest> ReadRequest(int fd, std::string& buffer) {
  size_t end = 0;
  while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
    if (buffer.size() > kHeadBytesMax || !ReadMore(fd, buffer)) return std::nullopt;
  }
  std::string_view head = std::string_view(buffer).substr(0, end);
  std::string_view first = TakeLine(head);
  RecordedRequest request;
  request.method = first.substr(0, first.find(' '));
  first.remove_prefix(request.method.size() + 1);
  request.target = first.substr(0, first.find(' '));
  while (!head.empty()) {
    const std::string_view line = TakeLine(head);
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    request.headers[Lowercase(std::string(line.substr(0, colon)))] = line.substr(colon + 2);
  }
  buffer.erase(0, end + 4);
  const auto length = request.headers.find("content-length");
  if (length == request.headers.end()) return request;
  const size_t body_bytes = std::stoul(length->second);
  while (buffer.size() < body_bytes) {
    if (body_bytes > kHeadBytesMax || !ReadMore(fd, buffer)) return std::nullopt;
  }
  request.body = buffer.substr(0, body_bytes);
  buffer.erase(0, body_bytes);
  return request;
}

// "bytes=A-B" as the first byte and the length.
std::optional<std::pair<size_t, size_t>> ParseRange(const std::string& text, size_t size) {
  size_t first = 0;
  size_t last = 0;
  const char* const end = text.data() + text.size();
  if (!text.starts_with("bytes=")) return std::nullopt;
  const auto dash = std::from_chars(text.data() + 6, end, first).ptr;
  if (dash == end || std::from_chars(dash + 1, end, last).ptr != end) return std::nullopt;
  if (first > last || last >= size) return std::nullopt;
  return std::pair(first, last - first + 1);
}

}  // namespace

ScriptedHttpServer::ScriptedHttpServer() : listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  CHECK(::bind(listener_.get(), any, length) == 0);
  CHECK(::listen(listener_.get(), 128) == 0);
  CHECK(::getsockname(listener_.get(), any, &length) == 0);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] { Accept(); });
}

ScriptedHttpServer::~ScriptedHttpServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  std::vector<std::jthread> threads;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const int fd : open_fds_)
      ::shutdown(fd, SHUT_RDWR);
  }
  changed_.NotifyAll();
  acceptor_.join();
  const MutexLock lock(mutex_);
  threads.swap(threads_);
}

std::string ScriptedHttpServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

void ScriptedHttpServer::Put(const std::string& path, std::string body, std::string etag) {
  const MutexLock lock(mutex_);
  objects_["/" + path] = {std::move(body), std::move(etag)};
}

void ScriptedHttpServer::AnswerNext(const std::string& path, ScriptedAnswer answer) {
  const MutexLock lock(mutex_);
  script_["/" + path].push_back(std::move(answer));
}

void ScriptedHttpServer::set_ignores_ranges(bool ignores) {
  const MutexLock lock(mutex_);
  ignores_ranges_ = ignores;
}

void ScriptedHttpServer::set_required_headers(std::map<std::string, std::string> headers) {
  const MutexLock lock(mutex_);
  required_headers_ = std::move(headers);
}

std::vector<RecordedRequest> ScriptedHttpServer::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

int ScriptedHttpServer::connections() const {
  const MutexLock lock(mutex_);
  return connections_;
}

bool ScriptedHttpServer::WaitForRequests(size_t count) {
  const auto limit = std::chrono::steady_clock::now() + kWaitMax;
  const MutexLock lock(mutex_);
  while (requests_.size() < count) {
    if (!changed_.WaitUntil(mutex_, limit)) return false;
  }
  return true;
}

void ScriptedHttpServer::Accept() {
  while (true) {
    const int fd = ::accept(listener_.get(), nullptr, nullptr);
    const MutexLock lock(mutex_);
    if (fd < 0 || stopping_) {
      if (fd >= 0) ::close(fd);
      return;
    }
    ++connections_;
    open_fds_.push_back(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void ScriptedHttpServer::Serve(int fd) {
  std::string buffer;
  while (const std::optional<RecordedRequest> request = ReadRequest(fd, buffer)) {
    if (!AnswerOne(fd, *request)) break;
  }
  const MutexLock lock(mutex_);
  std::erase(open_fds_, fd);
  ::close(fd);
}

// False if the connection is to end.
bool ScriptedHttpServer::AnswerOne(int fd, const RecordedRequest& request) {
  const ScriptedAnswer answer = Choose(request);
  if (!answer.without_answer) {
    std::string head = fmt::format("HTTP/1.1 {} Scripted\r\n", answer.status);
    for (const std::string& header : answer.headers)
      head += header + "\r\n";
    if (!answer.without_length) {
      head +=
          fmt::format("Content-Length: {}\r\n", answer.content_length.value_or(answer.body.size()));
    }
    head += "\r\n";
    if (request.method != "HEAD") head += answer.body;
    SendAll(fd, head);  // tests ask for clients that have gone
  }
  switch (answer.end) {
    case ScriptedAnswer::End::kKeepAlive:
      return !answer.without_length;
    case ScriptedAnswer::End::kClose:
      return false;
    case ScriptedAnswer::End::kReset: {
      const linger at_once = {.l_onoff = 1, .l_linger = 0};
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      return false;
    }
    case ScriptedAnswer::End::kStall:
      Stall();
      return false;
  }
  return false;
}

void ScriptedHttpServer::Stall() {
  const auto limit = std::chrono::steady_clock::now() + kWaitMax;
  const MutexLock lock(mutex_);
  while (!stopping_ && changed_.WaitUntil(mutex_, limit)) {
  }
}

ScriptedAnswer ScriptedHttpServer::Choose(const RecordedRequest& request) {
  const std::string path = PercentDecoded(request.target);
  const MutexLock lock(mutex_);
  requests_.push_back(request);
  changed_.NotifyAll();
  if (auto& script = script_[path]; !script.empty()) {
    ScriptedAnswer answer = std::move(script.front());
    script.pop_front();
    return answer;
  }
  const auto object = objects_.find(path);
  if (object == objects_.end()) return {.status = 404, .body = "no such object"};
  return AnswerFromObject(object->second, request);
}

ScriptedAnswer ScriptedHttpServer::AnswerFromObject(const Object& object,
                                                    const RecordedRequest& request) const {
  // Both are sorted by name.
  if (!std::ranges::includes(request.headers, required_headers_))
    return {.status = 400, .body = "<Error><Code>InvalidRequest</Code></Error>"};
  ScriptedAnswer answer = {.body = object.body};
  if (!object.etag.empty()) answer.headers.push_back("ETag: " + object.etag);
  const auto if_match = request.headers.find("if-match");
  if (if_match != request.headers.end() && if_match->second != object.etag) {
    return {.status = 412, .body = "another version"};
  }
  const auto range = request.headers.find("range");
  if (range == request.headers.end() || ignores_ranges_) return answer;
  const auto part = ParseRange(range->second, object.body.size());
  if (!part) return {.status = 416};
  answer.status = 206;
  answer.headers.push_back(fmt::format("Content-Range: bytes {}-{}/{}", part->first,
                                       part->first + part->second - 1, object.body.size()));
  answer.body = object.body.substr(part->first, part->second);
  return answer;
}

}  // namespace optcache
