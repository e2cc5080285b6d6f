#pragma once

// How a connection goes on in plaintext once TLS has shown who its ends are (docs/formats/wire.md,
// Bulk).

#include "base/result.h"
#include "net/internal/stream.h"
#include "wire/seal.h"

namespace optcache::net {

struct BulkSeals {
  wire::FrameSeal of_dialer;    // of the frames of the side that connected
  wire::FrameSeal of_acceptor;  // of the others
};

// Both ends come to the same keys. `key` has kBulkKeyBytes.
inline constexpr std::size_t kBulkKeyBytes = 64;
BulkSeals MakeBulkSeals(ByteSpan key);

// TLS 1.3, whose handshake is done.
bool CanLeaveTls(const Stream& stream);
// Ends TLS on `stream` without a word to the peer, which has to do the same at the same byte.
Result<BulkSeals> LeaveTls(Stream& stream);

}  // namespace optcache::net
