#pragma once

// HTTP requests by cpprestsdk. All that it does happens on a thread of its own, one a process, so
// that nothing of it is ever used by two threads at a time.

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/http.h"
#include "net/tls.h"

namespace optcache::net {

struct RestCall {
  HttpRequest request;
  // For https; null: the system's CAs.
  std::shared_ptr<const TlsMaterial> material;
  std::string server_name;  // empty: the URL's host
};

// Who hears how a call goes. Called on cpprestsdk's thread: OnHead, then OnBytes whenever something
// comes, then OnEnd; or OnEnd alone.
class RestListener {
 public:
  virtual ~RestListener() = default;
  virtual void OnHead(int status, HttpHeaders headers) = 0;
  enum class Next { kGoOn, kWait, kStop };
  // kWait: nothing more is read until Resume. kStop: OnEnd follows with kCancelled.
  virtual Next OnBytes(std::string_view bytes) = 0;
  virtual void OnEnd(Status status) = 0;
};

// A call under way. Thread-safe. Letting go of it changes nothing.
class RestExchange {
 public:
  virtual ~RestExchange() = default;
  virtual void Resume() = 0;
  // OnEnd follows with kCancelled, unless it has come.
  virtual void Cancel() = 0;
};

// The connections kept for one user. Thread-safe. Calls that are under way when it dies go on.
class RestClient {
 public:
  RestClient();
  ~RestClient();
  RestClient(const RestClient&) = delete;
  RestClient& operator=(const RestClient&) = delete;

  // Codes of OnEnd as in HttpClient::Send, but for its limits.
  std::shared_ptr<RestExchange> Start(RestCall call, std::shared_ptr<RestListener> listener);

 private:
  class Servers;
  std::shared_ptr<Servers> servers_;  // shared with calls, and used on cpprestsdk's thread only
};

}  // namespace optcache::net
