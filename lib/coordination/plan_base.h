#pragma once

// The base of a plan version: which member holds which sample at the cut. Fixed by the coordinator
// from the members' inventories, named by the SHA-256 of its bytes (docs/formats/control.md,
// "Base").

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "coordination/state.h"

namespace optcache::coordination {

struct Holdings {
  MemberId member = 0;
  std::vector<SampleId> ids;  // ascending
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

// Ascending by member; no sample has two holders.
struct PlanBase {
  std::vector<Holdings> members;
  friend bool operator==(const PlanBase&, const PlanBase&) = default;
};

// Leaves each sample that several members hold with the first of them, and sorts. Members that hold
// nothing are left out.
PlanBase MakePlanBase(std::vector<Holdings> inventories);

// One encoding for each value.
std::string EncodePlanBase(const PlanBase& base);
// kInvalidArgument for anything that EncodePlanBase does not write.
Result<PlanBase> DecodePlanBase(std::string_view bytes);

// The name of `bytes`: SHA-256, 64 hex digits.
std::string DigestHex(std::string_view bytes);

}  // namespace optcache::coordination
