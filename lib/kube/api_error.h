#pragma once

// How a request to the API server failed.

#include <expected>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "kube/object.h"
#include "net/http.h"

namespace optcache::kube {

// A value. `status` says what the caller does next, the rest tells apart what a Status cannot:
//
//   kUnavailable       no connection, 5xx: try again
//   kDeadlineExceeded  no answer in time, 408, 504
//   kResourceExhausted 429, or too many of our own requests wait
//   kNotFound          404
//   kConflict          409 and 410: read again
//   kPermissionDenied  401, 403
//   kInvalidArgument   400, 413, 422 and other 4xx: the request is wrong and stays wrong
//   kCancelled         a write that this process may not do (any more): it does not lead
struct ApiError {
  Status status;
  int http_status = 0;  // 0: there was no answer
  std::string reason;   // of the API's Status object: "AlreadyExists", "Expired"
  std::optional<Duration> retry_after;
  bool namespace_terminating = false;  // 403: what is created there is on its way out anyway
  bool namespace_missing = false;      // 404: that of the object is not there (yet)

  bool not_found() const { return status.code() == Code::kNotFound; }
  bool already_exists() const { return reason == "AlreadyExists"; }
  // Somebody else has changed the object since it was read.
  bool conflict() const { return http_status == 409 && !already_exists(); }
  // A resourceVersion or continue token that is too old: list again.
  bool expired() const { return http_status == 410; }
  bool unauthorized() const { return http_status == 401; }
  // The same request may succeed later.
  bool transient() const;
};

template <typename T>
using ApiResult = std::expected<T, ApiError>;

// Of a failed exchange.
ApiError MakeApiError(Status transport);
// Of a response with an error status. `what` goes in front of the message: "get datasets
// vision/imagenet". Bodies that are no Status object are quoted, shortened.
ApiError MakeApiError(int http_status, const net::HttpHeaders& headers, std::string_view body,
                      std::string_view what);
// Of a Status object, as it stands in a watch; what it leaves out counts as 500.
ApiError MakeApiError(const Json& api_status, std::string_view what);

inline bool IsSuccess(int http_status) {
  return http_status >= 200 && http_status < 300;
}

}  // namespace optcache::kube
