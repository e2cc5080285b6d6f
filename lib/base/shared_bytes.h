#pragma once

// Bytes that many read and nobody copies.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache {

// Read-only bytes with what keeps them: a string, or a mapped file, whose pages the kernel may take
// back while they are not read. Copies share. Thread-safe: nothing changes it.
class SharedBytes {
 public:
  SharedBytes() = default;
  // Takes over the string.
  SharedBytes(std::string bytes)  // NOLINT(google-explicit-constructor): a string is such bytes
      : SharedBytes(std::make_shared<const std::string>(std::move(bytes))) {}

  // A file that nobody shortens while it is mapped: what has been written atomically, or is sealed.
  // kResourceExhausted if it has more than `limit` bytes.
  static Result<SharedBytes> Map(const std::string& path, ByteCount limit);
  // `name` is for errors. The descriptor may be closed afterwards.
  static Result<SharedBytes> Map(int fd, const std::string& name, ByteCount limit);

  std::string_view view() const { return view_; }
  const char* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }

 private:
  explicit SharedBytes(const std::shared_ptr<const std::string>& bytes)
      : view_(*bytes), owner_(bytes) {}
  SharedBytes(std::string_view view, std::shared_ptr<const void> owner)
      : view_(view), owner_(std::move(owner)) {}

  std::string_view view_;
  std::shared_ptr<const void> owner_;
};

}  // namespace optcache
