#pragma once

// Result<T>: a value, or the Status that says why there is none.
//
//   Result<Manifest> ReadManifest(const std::string& path) {
//     ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
//     RETURN_IF_ERROR(CheckDigest(bytes));
//     return ParseManifest(bytes);
//   }

#include <expected>
#include <utility>

#include "base/status.h"

namespace optcache {

template <typename T>
using Result = std::expected<T, Status>;

// The error side of a Result: `return Error(Code::kNotFound, "...")`.
inline std::unexpected<Status> Error(Code code, std::string message) {
  return std::unexpected(Status(code, std::move(message)));
}
inline std::unexpected<Status> Error(Status status) {
  return std::unexpected(std::move(status));
}

namespace internal {
inline Status StatusOf(Status status) {
  return status;
}
template <typename T>
Status StatusOf(const Result<T>& result) {
  return result ? OkStatus() : result.error();
}
}  // namespace internal

}  // namespace optcache

#define OPTCACHE_CONCAT_INNER(a, b) a##b
#define OPTCACHE_CONCAT(a, b) OPTCACHE_CONCAT_INNER(a, b)

// Ends the calling function with the error of `expression` (a Status or a Result), if it is one.
// Works in functions that return Status or Result<T>.
#define RETURN_IF_ERROR(expression)                                                             \
  if (auto optcache_status = ::optcache::internal::StatusOf(expression); !optcache_status.ok()) \
  return ::optcache::internal::Propagate(std::move(optcache_status))

// Declares `declaration` with the value of `expression`, or ends the function with its error.
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_INNER(OPTCACHE_CONCAT(optcache_result_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_INNER(result, declaration, expression)                   \
  auto result = (expression);                                                     \
  if (!result) return ::optcache::internal::Propagate(std::move(result).error()); \
  declaration = *std::move(result)

namespace optcache::internal {

// Converts to whatever the function returns: a Status or any Result<T>.
class Propagate {
 public:
  explicit Propagate(Status status) : status_(std::move(status)) {}
  operator Status() && { return std::move(status_); }  // NOLINT(google-explicit-constructor)
  template <typename T>
  operator std::expected<T, Status>() && {  // NOLINT(google-explicit-constructor)
    return std::unexpected(std::move(status_));
  }

 private:
  Status status_;
};

}  // namespace optcache::internal
