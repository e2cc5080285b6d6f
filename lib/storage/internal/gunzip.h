#pragma once

// Unpacks gzip (RFC 1952) piece by piece. zlib is in gunzip.cc alone.

#include <functional>
#include <memory>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

struct z_stream_s;

namespace optcache::storage::internal {

// One file, perhaps of several members one after the other. zlib compares the checksum and the
// length that end each member. Not thread-safe.
class Gunzip {
 public:
  using Take = std::function<Status(std::string_view text)>;

  Gunzip();
  ~Gunzip();
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  // Hands on what `packed` unpacks to, in pieces of 64 KiB at most. kDataLoss: it is no gzip, or is
  // damaged. Else what `take` returned if that is not ok; then nothing more may be added.
  Status Add(ByteSpan packed, const Take& take);
  // At the end of the file. kDataLoss: it ends early.
  Status Finish() const;

 private:
  struct End {
    void operator()(z_stream_s* stream) const;
  };
  std::unique_ptr<z_stream_s, End> stream_;
  bool in_member_ = false;  // something of one has come, and not its end
  bool empty_ = true;       // nothing has come
};

}  // namespace optcache::storage::internal
