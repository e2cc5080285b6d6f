#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"

namespace optcache {

// How one request is answered instead of from the server's objects.
struct ScriptedAnswer {
  // What follows the answer on the connection.
  enum class End {
    kKeepAlive,  // the next request
    kClose,      // an orderly end
    kReset,      // RST
    kStall,      // nothing, until the client gives up
  };

  int status = 200;
  std::vector<std::string> headers = {};  // "Name: value", without Content-Length
  std::string body = {};
  std::optional<std::uint64_t> content_length = {};  // a lie; unset: the body's
  bool without_length = false;                       // no Content-Length: ends with the connection
  bool without_answer = false;                       // not a byte before `end`
  End end = End::kKeepAlive;
};

struct RecordedRequest {
  std::string method;
  std::string target;                          // as sent, percent-encoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// A small HTTP/1.1 file server on the loopback, on a port of the system's choice, that misbehaves
// on request. Knows GET, HEAD, bodies of a known length, single ranges, If-Match and keep-alive.
// Thread-safe.
class ScriptedHttpServer {
 public:
  ScriptedHttpServer();
  ~ScriptedHttpServer();
  ScriptedHttpServer(const ScriptedHttpServer&) = delete;
  ScriptedHttpServer& operator=(const ScriptedHttpServer&) = delete;

  // "http://127.0.0.1:PORT"
  std::string url() const;

  void Put(const std::string& path, std::string body, std::string etag = "");
  // The next requests for `path` are answered so, one after the other.
  void AnswerNext(const std::string& path, ScriptedAnswer answer);
  void set_ignores_ranges(bool ignores);
  // Objects are answered with 400 from now on, where a request has not these headers (names in
  // lower case) with these values.
  void set_required_headers(std::map<std::string, std::string> headers);

  std::vector<RecordedRequest> requests() const;
  int connections() const;
  // Waits until that many requests came in all; false after a minute.
  bool WaitForRequests(size_t count);

 private:
  struct Object {
    std::string body;
    std::string etag;
  };

  void Accept();
  void Serve(int fd);
  bool AnswerOne(int fd, const RecordedRequest& request);
  ScriptedAnswer Choose(const RecordedRequest& request);
  ScriptedAnswer AnswerFromObject(const Object& object, const RecordedRequest& request) const
      REQUIRES(mutex_);
  void Stall();

  UniqueFd listener_;
  int port_ = 0;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  bool ignores_ranges_ GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> required_headers_ GUARDED_BY(mutex_);
  std::map<std::string, Object> objects_ GUARDED_BY(mutex_);
  std::map<std::string, std::deque<ScriptedAnswer>> script_ GUARDED_BY(mutex_);
  std::vector<RecordedRequest> requests_ GUARDED_BY(mutex_);
  std::vector<int> open_fds_ GUARDED_BY(mutex_);
  int connections_ GUARDED_BY(mutex_) = 0;
  std::vector<std::jthread> threads_ GUARDED_BY(mutex_);
  std::jthread acceptor_;
};

}  // namespace optcache
