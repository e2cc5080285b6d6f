#include "dataset/members.h"

#include <fmt/format.h>

#include "base/check.h"
#include "dataset/internal/little_endian.h"

namespace optcache::dataset {
namespace {

constexpr std::string_view kMembersMagic = "OMB1";

ByteCount HeadBytes(std::string_view key, const std::vector<Member>& members) {
  ByteCount bytes = kMembersFixedBytes + kMemberHeadBytes * members.size() + key.size();
  for (const Member& member : members)
    bytes += member.name.size();
  return bytes + MemberPadding(bytes);
}

}  // namespace

std::string MembersHead(std::string_view key, const std::vector<Member>& members) {
  CHECK(!members.empty() && members.size() <= kMembersMax);
  const ByteCount length = HeadBytes(key, members);
  std::string head;
  head.reserve(length);
  head += kMembersMagic;
  internal::Append<std::uint32_t>(head, static_cast<std::uint32_t>(members.size()));
  internal::Append<std::uint32_t>(head, static_cast<std::uint32_t>(key.size()));
  internal::Append<std::uint32_t>(head, static_cast<std::uint32_t>(length));
  for (const Member& member : members)
    internal::Append<std::uint64_t>(head, member.size);
  for (const Member& member : members)
    internal::Append<std::uint32_t>(head, static_cast<std::uint32_t>(member.name.size()));
  head += key;
  for (const Member& member : members)
    head += member.name;
  head.resize(length, '\0');
  return head;
}

Result<ByteCount> MembersSize(std::string_view key, const std::vector<Member>& members) {
  if (members.empty() || members.size() > kMembersMax) {
    return Error(Code::kInvalidArgument, fmt::format("{}: {} members; a sample has 1 to {}", key,
                                                     members.size(), kMembersMax));
  }
  // Names and key have at most kStringBytesMax bytes each, so a head stays below 2^32.
  ByteCount total = HeadBytes(key, members);
  for (const Member& member : members) {
    ByteCount padded = 0;
    if (__builtin_add_overflow(member.size, MemberPadding(member.size), &padded) ||
        __builtin_add_overflow(total, padded, &total)) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{}: its members' sizes add up beyond 64 bits", key));
    }
  }
  return total;
}

}  // namespace optcache::dataset
