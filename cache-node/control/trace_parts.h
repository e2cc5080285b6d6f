#pragma once

// A list of ids that a sidecar sends in parts (wire::StreamTrace), as the bytes that name it
// (docs/formats/list.md).

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "coordination/state.h"
#include "dataset/digest.h"
#include "wire/messages.h"

namespace optcache::node {

// Not thread-safe: a value.
class TraceParts {
 public:
  // What the whole list takes, by what its first part says; 0: more than a list may.
  static std::uint64_t SizeOf(const wire::StreamTrace& part);

  // One from offset 0 begins again. After kInvalidArgument, which says what is wrong with the part,
  // the list is not to be used.
  Status Add(const wire::StreamTrace& part);

  std::uint64_t size() const { return size_; }
  bool whole() const { return !digest_.empty(); }
  // Of a whole list.
  const std::string& digest() const { return digest_; }
  const std::shared_ptr<const std::string>& bytes() const { return bytes_; }
  std::uint64_t length() const { return length_; }

 private:
  std::uint32_t bits_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t size_ = 0;
  std::string growing_;
  dataset::Sha256 sha_;
  std::string digest_;  // hex; empty until it is whole
  std::shared_ptr<const std::string> bytes_;
};

}  // namespace optcache::node
