#pragma once

// Which loader reads by which name, where several jobs attach theirs by the same one. Pure.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace optcache::sidecar {

// A rank that reads, or will.
struct NameClaim {
  std::string_view asked;    // the name that its process said
  std::string_view name;     // the one that it got; of a newcomer: none
  std::string_view job;      // the same in all processes of a job; empty: nobody knows
  std::int32_t process = 0;  // its id; 0: cannot be seen from here, all such are one
  std::uint32_t world = 1;
  Rank rank = 0;
};

// Are these ranks of one job? Those of one process are, and one rank in two processes never is.
// Where no job is known, ranks that fit each other are taken for one.
bool SameJob(const NameClaim& a, const NameClaim& b);

// By which name the newcomer reads beside `others`, those that read now: the one that ranks of its
// job got who asked for the same, else what it asked for, or that with "-2", "-3", ..., so that no
// other job reads by it. A job that comes again gets its name while nobody else has it.
std::string NameFor(const NameClaim& newcomer, std::span<const NameClaim> others);

}  // namespace optcache::sidecar
