#include "coordination/capacity_split.h"

#include <algorithm>
#include <map>

namespace optcache::coordination {
namespace {

__extension__ using Wide = unsigned __int128;  // products and sums of byte counts

bool Wants(const CapacityWish& wish, MemberId member) {
  return !wish.members || std::ranges::binary_search(*wish.members, member);
}

// As if each wish were alone: wish * offer / (offers of its members), rounded down.
std::vector<MemberCapacity> Demand(const std::vector<Member>& members, const CapacityWish& wish) {
  std::vector<MemberCapacity> demand;
  Wide offered = 0;
  for (const Member& member : members) {
    if (!Wants(wish, member.id)) continue;
    offered += member.capacity;
    demand.push_back({.member = member.id, .bytes = member.capacity});
  }
  for (MemberCapacity& share : demand) {
    const Wide part = offered == 0 ? 0 : Wide{wish.bytes} * share.bytes / offered;
    share.bytes = static_cast<ByteCount>(part);
  }
  return demand;
}

}  // namespace

std::vector<std::vector<MemberCapacity>> SplitCapacity(const std::vector<Member>& members,
                                                       const std::vector<CapacityWish>& wishes) {
  std::vector<std::vector<MemberCapacity>> shares;
  shares.reserve(wishes.size());
  std::map<MemberId, Wide> demanded;
  for (const CapacityWish& wish : wishes) {
    shares.push_back(Demand(members, wish));
    for (const MemberCapacity& share : shares.back())
      demanded[share.member] += share.bytes;
  }
  std::map<MemberId, ByteCount> offers;
  for (const Member& member : members)
    offers.emplace(member.id, member.capacity);
  for (std::vector<MemberCapacity>& dataset : shares) {
    for (MemberCapacity& share : dataset) {
      const Wide offer = offers.at(share.member);
      const Wide whole = std::max(demanded.at(share.member), offer);
      if (whole != 0) share.bytes = static_cast<ByteCount>(offer * share.bytes / whole);
    }
  }
  return shares;
}

}  // namespace optcache::coordination
