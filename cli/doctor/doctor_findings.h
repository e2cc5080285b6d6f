#pragma once

// What `optcache doctor` finds on this machine, from what it saw. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/memory_room.h"
#include "base/status.h"
#include "cli/explain/finding.h"
#include "cli/explain/training_limit.h"

namespace optcache::cli {

inline constexpr ByteCount kLeastSharedMemory = 256_MiB;  // for the workers of a DataLoader
inline constexpr std::uint64_t kLeastOpenFiles = 4096;

// What came of asking the sidecar's socket.
enum class SocketState : std::uint8_t {
  kNotNamed,   // OPTCACHE_SOCKET is not set
  kMissing,    // there is none at the path
  kForbidden,  // this user may not reach it
  kRefused,    // no process listens
  kSilent,     // a process listens and does not answer
  kTurnsAway,  // a sidecar answers with an error
  kAnswers,
};

// A page that a part of the cache serves over HTTP.
struct PageFact {
  std::string part;  // "node-0"
  std::string url;
  std::string error;  // empty: it answers
};

// What was seen; not set: it could not be seen.
struct DoctorFacts {
  MemoryRoom memory;                     // in all
  ByteCount memory_free = 0;             // that a process may still take
  ByteCount memory_wanted = 0;           // for a cache that will be started; 0: none is
  std::optional<ByteCount> shared_size;  // of /dev/shm
  std::optional<ByteCount> shared_free;
  std::optional<std::uint64_t> open_files;  // as many as a process may raise its limit to
  std::string socket;
  SocketState socket_state = SocketState::kNotNamed;
  std::string socket_error;          // the sidecar's words, of kTurnsAway
  Status cache;                      // kNotFound: none runs; else why its coordinator is no help
  std::vector<PageFact> pages;       // of its parts
  std::vector<PageLooks> looks;      // at the pages of its sidecars that answer
  std::optional<bool> clock_is_set;  // by a time server
};

// In a fixed order, one at least for each thing that was looked at.
std::vector<Finding> FindingsOf(const DoctorFacts& facts);

}  // namespace optcache::cli
