#include "capacity/capacity_split.h"

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
  if (!wish.shares.empty()) {
    for (std::size_t i = 0; i < wish.shares.size(); ++i)
      demand.push_back({.member = (*wish.members)[i], .bytes = wish.shares[i]});
    return demand;
  }
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

ByteCount Less(ByteCount bytes, ByteCount taken) {
  return bytes > taken ? bytes - taken : 0;
}

ByteCount TotalOf(std::span<const MemberCapacity> shares) {
  ByteCount total = 0;
  for (const MemberCapacity& share : shares)
    total += share.bytes;
  return total;
}

ByteCount BytesOf(std::span<const MemberCapacity> shares, MemberId member) {
  const auto found = std::ranges::lower_bound(shares, member, {}, &MemberCapacity::member);
  return found != shares.end() && found->member == member ? found->bytes : 0;
}

std::vector<std::vector<MemberCapacity>> SplitMemory(const std::vector<Member>& members,
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

}  // namespace

std::vector<std::vector<MemberCapacity>> SplitCapacity(const std::vector<Member>& members,
                                                       const std::vector<CapacityWish>& wishes) {
  auto shares = SplitMemory(members, wishes);
  std::vector<Member> disks = members;
  for (Member& member : disks)
    member.capacity = member.disk;
  std::vector<CapacityWish> wanted;
  wanted.reserve(wishes.size());
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    wanted.push_back({.bytes = Less(wishes[i].with_disk, TotalOf(shares[i])),
                      .members = wishes[i].members,
                      .shares = {}});
  }
  const auto on_disk = SplitMemory(disks, wanted);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    for (std::size_t m = 0; m < shares[i].size(); ++m) {
      shares[i][m].disk = on_disk[i][m].bytes;
      shares[i][m].bytes += on_disk[i][m].bytes;
    }
  }
  return shares;
}

std::vector<std::vector<MemberCapacity>> ShareGrant(const std::vector<MemberCapacity>& grant,
                                                    const std::vector<ManifestClaim>& claims) {
  std::size_t readers = 0;
  for (const ManifestClaim& claim : claims)
    readers += claim.ranks;
  std::vector<std::vector<MemberCapacity>> shares(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    // Of all members, and of one: what the other manifests have, or are about to have.
    const auto others = [&](const auto& bytes_of) {
      ByteCount sum = 0;
      for (std::size_t j = 0; j < claims.size(); ++j) {
        if (j != i) sum += std::max(bytes_of(claims[j].in_force), bytes_of(shares[j]));
      }
      return sum;
    };
    const std::size_t own = readers > 0 ? claims[i].ranks : (i == 0 ? 1 : 0);
    ByteCount left = std::max(TotalOf(claims[i].in_force), Less(TotalOf(grant), others(TotalOf)));
    for (const auto& [member, granted, disk, departs] : grant) {
      const auto bytes_of = [id = member](std::span<const MemberCapacity> some) {
        return BytesOf(some, id);
      };
      const ByteCount room =
          std::max(bytes_of(claims[i].in_force), Less(granted, others(bytes_of)));
      const auto due =
          static_cast<ByteCount>(Wide{granted} * own / std::max<std::size_t>(readers, 1));
      const ByteCount share = std::min({due, room, left});
      left -= share;
      const Wide on_disk = granted == 0 ? 0 : Wide{disk} * share / granted;
      shares[i].push_back({.member = member,
                           .bytes = share,
                           .disk = static_cast<ByteCount>(on_disk),
                           .departs = departs});
    }
  }
  return shares;
}

}  // namespace optcache::coordination
