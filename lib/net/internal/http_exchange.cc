#include "net/internal/http_exchange.h"

#include <utility>

#include "net/internal/http_session.h"

namespace optcache::net {

HttpResponder::Exchange::Exchange(std::weak_ptr<HttpSession> session, std::uint64_t turn)
    : session_(std::move(session)), turn_(turn) {}

HttpResponder::Exchange::~Exchange() {
  const auto session = session_.lock();
  if (session == nullptr || !session->Awaits(turn_)) return;
  session->Respond(turn_, session->OwnAnswer(500, "the request was dropped"));
}

void HttpResponder::Exchange::Respond(HttpResponse response) {
  if (const auto session = session_.lock()) session->Respond(turn_, std::move(response));
}

bool HttpResponder::Exchange::abandoned() const {
  const auto session = session_.lock();
  return session == nullptr || !session->Awaits(turn_);
}

void HttpResponder::operator()(HttpResponse response) const {
  exchange_->Respond(std::move(response));
}

bool HttpResponder::abandoned() const {
  return exchange_->abandoned();
}

}  // namespace optcache::net
