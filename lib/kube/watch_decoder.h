#pragma once

// The bytes of a watch: one JSON object a line, cut anywhere on its way.

#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "kube/api_error.h"
#include "kube/client.h"

namespace optcache::kube {

// An event, or the ERROR with which the server ends the watch.
using DecodedEvent = std::variant<WatchEvent, ApiError>;

// Not thread-safe: a value with one owner.
class WatchDecoder {
 public:
  explicit WatchDecoder(ByteCount max_line_bytes = kMaxLineBytes) : limit_(max_line_bytes) {}

  // An object in etcd has at most 1.5 MiB; as JSON with managedFields several times that.
  static constexpr ByteCount kMaxLineBytes = 16_MiB;

  // Appends the events that `bytes` complete. kDataLoss: not the lines of a watch;
  // kResourceExhausted: a line beyond the limit. After an error the watch is lost.
  Status Feed(std::string_view bytes, std::vector<DecodedEvent>& events);
  // At the end of the stream: kDataLoss if it ends within a line.
  Status Finish() const;

 private:
  ByteCount limit_;
  std::string line_;  // its beginning, so far
};

}  // namespace optcache::kube
