#pragma once

// How much of the nodes' memory each Dataset gets.

#include <span>
#include <vector>

#include "base/bytes.h"

namespace optcache::reconcile {

struct Claim {
  ByteCount wanted = 0;
  std::vector<std::size_t> members;  // indexes of offers; ascending, each once
};

// Max-min fairness: nobody gets more than wanted, and nobody could get more without taking from one
// that has less. What a claim gets is spread over its members in proportion to their offers, as
// coordination::SplitCapacity does, and no member gives more than it offers. So a small Dataset is
// never pushed aside by one that asks for everything.
std::vector<ByteCount> FairShares(std::span<const ByteCount> offers, std::span<const Claim> claims);

}  // namespace optcache::reconcile
