#include "coordination/capacity_split.h"

namespace optcache::coordination {
namespace {

__extension__ using Wide = unsigned __int128;  // products of two byte counts

}  // namespace

// All wishes together want W; the members offer M. Member i gives dataset d
// wish[d] * offer[i] / max(W, M), rounded down.
std::vector<std::vector<MemberCapacity>> SplitCapacity(const std::vector<Member>& members,
                                                       const std::vector<ByteCount>& wishes) {
  Wide offered = 0;
  for (const Member& member : members)
    offered += member.capacity;
  Wide wanted = 0;
  for (const ByteCount wish : wishes)
    wanted += wish;
  const Wide whole = wanted > offered ? wanted : offered;
  std::vector<std::vector<MemberCapacity>> shares(wishes.size());
  for (std::size_t dataset = 0; dataset < wishes.size(); ++dataset) {
    for (const Member& member : members) {
      const Wide share = whole == 0 ? 0 : Wide{wishes[dataset]} * member.capacity / whole;
      shares[dataset].push_back({.member = member.id, .bytes = static_cast<ByteCount>(share)});
    }
  }
  return shares;
}

}  // namespace optcache::coordination
