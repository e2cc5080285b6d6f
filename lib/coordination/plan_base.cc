#include "coordination/plan_base.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "coordination/sample_set.h"
#include "dataset/digest.h"

namespace optcache::coordination {
namespace {

constexpr std::string_view kMagic = "OCBASE01";
constexpr std::size_t kHeaderBytes = 12;  // of a member: id and length

void AppendNumber(std::uint64_t value, unsigned bytes, std::string& out) {
  for (unsigned i = 0; i < bytes; ++i)
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
}

std::uint64_t TakeNumber(unsigned bytes, std::string_view& in) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(in[i])} << (8 * i);
  }
  in.remove_prefix(bytes);
  return value;
}

Status Malformed(std::string_view what) {
  return {Code::kInvalidArgument, "base: " + std::string(what)};
}

Result<Holdings> TakeMember(std::string_view& in) {
  if (in.size() < kHeaderBytes) return Error(Malformed("cut short in a member's header"));
  Holdings holdings;
  holdings.member = static_cast<MemberId>(TakeNumber(4, in));
  const std::uint64_t length = TakeNumber(8, in);
  if (length > in.size()) return Error(Malformed("cut short in a member's set"));
  ASSIGN_OR_RETURN(holdings.ids, DecodeSampleSet(in.substr(0, length)));
  if (holdings.ids.empty()) return Error(Malformed("lists a member that holds nothing"));
  in.remove_prefix(length);
  return holdings;
}

// Whether some sample has two holders.
bool HasTwoHolders(const PlanBase& base) {
  std::vector<SampleId> all;
  for (const Holdings& holdings : base.members) {
    all.insert(all.end(), holdings.ids.begin(), holdings.ids.end());
  }
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) != all.end();
}

}  // namespace

PlanBase MakePlanBase(std::vector<Holdings> inventories) {
  std::ranges::sort(inventories, {}, &Holdings::member);
  SampleId end = 0;
  for (const Holdings& holdings : inventories) {
    if (!holdings.ids.empty()) end = std::max(end, holdings.ids.back());
  }
  std::vector<bool> taken(std::size_t{end} + 1);
  PlanBase base;
  for (Holdings& holdings : inventories) {
    std::erase_if(holdings.ids, [&](SampleId id) { return taken[id]; });
    for (const SampleId id : holdings.ids)
      taken[id] = true;
    if (!holdings.ids.empty()) base.members.push_back(std::move(holdings));
  }
  return base;
}

std::string EncodePlanBase(const PlanBase& base) {
  std::string out(kMagic);
  for (const Holdings& holdings : base.members) {
    const std::string set = EncodeSampleSet(holdings.ids);
    AppendNumber(holdings.member, 4, out);
    AppendNumber(set.size(), 8, out);
    out += set;
  }
  return out;
}

Result<PlanBase> DecodePlanBase(std::string_view bytes) {
  if (bytes.size() > kMaxBaseBytes) return Error(Malformed("larger than 64 MiB"));
  if (!bytes.starts_with(kMagic)) return Error(Malformed("does not begin with OCBASE01"));
  bytes.remove_prefix(kMagic.size());
  PlanBase base;
  while (!bytes.empty()) {
    ASSIGN_OR_RETURN(Holdings holdings, TakeMember(bytes));
    if (!base.members.empty() && holdings.member <= base.members.back().member) {
      return Error(Malformed("its members do not ascend"));
    }
    base.members.push_back(std::move(holdings));
  }
  if (HasTwoHolders(base)) return Error(Malformed("a sample has two holders"));
  return base;
}

std::string DigestHex(std::string_view bytes) {
  return dataset::ToHex(dataset::Sha256Of(AsBytes(bytes)));
}

}  // namespace optcache::coordination
