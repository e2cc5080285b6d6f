#pragma once

// How much of the members' memory each dataset gets, and why. In this order:
//
//   1. guarantees: what a user wants kept whatever happens
//   2. datasets that are read: each byte to whom it saves most store bytes a second
//   3. the others share what is left
//
// Each never beyond its maximum, and each step by max-min fairness where there is too little for
// all that it asks for (water_filling.h). As benefits are concave, the second step is best possible
// if all datasets lie on the same members. Pure: the same claims in any order, the same shares.

#include <span>
#include <string>
#include <vector>

#include "capacity/saved_bytes.h"

namespace optcache::coordination {

struct CapacityClaim {
  std::string dataset;  // "namespace/name", each once
  ByteCount guaranteed = 0;
  ByteCount maximum = 0;
  std::vector<MarginalBenefit> benefit;  // of its memory; empty: no job reads it
  bool measured = true;                  // else how fast it is read is assumed
  std::vector<std::size_t> members;      // indexes of offers; ascending, each once
};

struct CapacityShare {
  std::vector<ByteCount> bytes;  // of each of its members, in their order
  ByteCount total = 0;
  friend bool operator==(const CapacityShare&, const CapacityShare&) = default;
};

// Bytes whose worth differs by less than this share of it are worth the same: rates are measured,
// and among equals memory is shared.
inline constexpr double kSameMarginalBenefit = 0.1;

// One for each claim, in their order.
std::vector<CapacityShare> SplitByMarginalBenefit(std::span<const ByteCount> offers,
                                                  std::span<const CapacityClaim> claims);

// For people, of each: "1.2 GiB of 4 GiB: saves 35 MiB/s; the next byte is worth more to
// team/imagenet".
std::vector<std::string> ExplainShares(std::span<const CapacityClaim> claims,
                                       std::span<const CapacityShare> shares);

}  // namespace optcache::coordination
