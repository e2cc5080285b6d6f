#pragma once

// Looks at this machine and at a cache that runs on it, for `optcache doctor`.

#include <string>

#include "base/bytes.h"
#include "base/clock.h"
#include "cli/doctor/doctor_findings.h"

namespace optcache::cli {

// How long a socket or a page may take to answer.
inline constexpr Duration kDoctorPatience = std::chrono::seconds(5);

struct DoctorQuestions {
  ByteCount memory_wanted = 0;  // by a cache that will be started; 0: by none
  std::string socket;           // empty: none is named
  std::string state_dir;        // where an `optcache up` may run
};

// What a sidecar's socket answers.
struct SocketAnswer {
  SocketState state = SocketState::kNotNamed;
  std::string error;  // of kTurnsAway, in the sidecar's words
};

// The coordinator, the socket, the nodes' pages and each of two looks at the sidecars' pages take
// kDoctorPatience at most. Between the looks it waits 2 s if a rank is attached.
DoctorFacts GatherFacts(const DoctorQuestions& questions);

// Whether a sidecar answers at the path, and takes this process as a client.
SocketAnswer AskSocket(const std::string& path, Duration patience);

}  // namespace optcache::cli
