#include "control/error_response.h"

#include <nlohmann/json.hpp>

namespace optcache::control {
namespace {

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return 400;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kConflict:
      return 409;
    case Code::kResourceExhausted:
    case Code::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

}  // namespace

net::HttpResponse ErrorResponse(const Status& status) {
  const nlohmann::json body = {{"error", status.ToString()}};
  return net::HttpResponse::Json(
      HttpStatusOf(status.code()),
      body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace optcache::control
