#pragma once

#include <cstdint>
#include <memory>

#include "net/http_server.h"

namespace optcache::net {

class HttpSession;

// One request that waits for its response.
class HttpResponder::Exchange {
 public:
  Exchange(std::weak_ptr<HttpSession> session, std::uint64_t turn);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  void Respond(HttpResponse response);
  bool abandoned() const;

 private:
  std::weak_ptr<HttpSession> session_;
  std::uint64_t turn_;
};

}  // namespace optcache::net
