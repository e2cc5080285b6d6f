#pragma once

// A sample that consists of several members of an archive, as one piece of bytes
// (docs/formats/members.md).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::dataset {

inline constexpr std::uint32_t kMembersMax = 4096;  // of one sample
// The head without key and names: once, and for each member.
inline constexpr ByteCount kMembersFixedBytes = 16;
inline constexpr ByteCount kMemberHeadBytes = 12;

// Where a part of a sample lies in its shard.
struct Member {
  std::string name;      // within its sample: "jpg"; empty where the sample is the member
  ByteCount offset = 0;  // of its data in the shard
  ByteCount size = 0;
  friend bool operator==(const Member&, const Member&) = default;
};

// The padding that follows this many bytes: 0 to 7.
constexpr ByteCount MemberPadding(ByteCount size) {
  return (ByteCount{8} - size % 8) % 8;
}

// What stands before the members' data. CHECKs the number of members.
std::string MembersHead(std::string_view key, const std::vector<Member>& members);

// The length of the whole sample. kInvalidArgument: no or too many members, or it goes beyond 64
// bits.
Result<ByteCount> MembersSize(std::string_view key, const std::vector<Member>& members);

}  // namespace optcache::dataset
