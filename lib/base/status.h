#pragma once

// Status: how a call ended. Codes are few and say what the caller does next.

#include <string>
#include <string_view>
#include <utility>

namespace optcache {

enum class Code {
  kOk,
  kNotFound,           // it is not there; asking again does not help
  kInvalidArgument,    // the caller's input is wrong
  kUnavailable,        // try again later
  kConflict,           // it changed meanwhile; read again
  kResourceExhausted,  // no room; slow down
  kDeadlineExceeded,   // it took too long
  kCancelled,          // the caller or a shutdown ended it
  kDataLoss,           // bytes are missing or wrong
  kPermissionDenied,   // not allowed
  kInternal,           // our own fault
};

// The code's name as it appears in logs and metrics, for example "not_found".
std::string_view CodeName(Code code);

// A code and a sentence for people. Cheap to copy when ok. Not thread-safe: a value.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // Puts `context` in front of the message: "open manifest: no such file".
  Status WithContext(std::string_view context) &&;

  // "not_found: open manifest: no such file", or "ok".
  std::string ToString() const;

  friend bool operator==(const Status&, const Status&) = default;

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

inline Status OkStatus() {
  return {};
}

// Status of a failed system call: maps errno and appends its text to `what`.
Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace optcache
