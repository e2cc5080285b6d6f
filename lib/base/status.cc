#include "base/status.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace optcache {

std::string_view CodeName(Code code) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "ok",        "not_found",          "invalid_argument",  "unavailable",
      "conflict",  "resource_exhausted", "deadline_exceeded", "cancelled",
      "data_loss", "permission_denied",  "internal"};
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown";
}

Status Status::WithContext(std::string_view context) && {
  if (!ok()) message_ = std::string(context) + ": " + message_;
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(CodeName(code_)) + ": " + message_;
}

Status ErrnoStatus(int error_number, std::string_view what) {
  Code code = Code::kInternal;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      code = Code::kNotFound;
      break;
    case EACCES:
    case EPERM:
      code = Code::kPermissionDenied;
      break;
    case ENOSPC:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      code = Code::kResourceExhausted;
      break;
    case EAGAIN:
    case EINTR:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
      code = Code::kUnavailable;
      break;
    case ETIMEDOUT:
      code = Code::kDeadlineExceeded;
      break;
    case EINVAL:
    case ENAMETOOLONG:
      code = Code::kInvalidArgument;
      break;
    default:
      break;
  }
  return {code, std::string(what) + ": " + std::generic_category().message(error_number)};
}

}  // namespace optcache
