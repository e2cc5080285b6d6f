#include "coordination/sample_set.h"

#include <algorithm>

#include "base/check.h"

namespace optcache::coordination {
namespace {

constexpr char kIds = 0;
constexpr char kBitmap = 1;
constexpr std::size_t kIdBytes = 4;

std::size_t BitmapBytes(SampleId last) {
  return std::size_t{last} / 8 + 1;
}

// Whether the set with `count` ids up to `last` is written as a bitmap.
bool BitmapIsShorter(std::size_t count, SampleId last) {
  return BitmapBytes(last) < count * kIdBytes;
}

void AppendId(SampleId id, std::string& out) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>((id >> shift) & 0xffU));
  }
}

Result<std::vector<SampleId>> DecodeIds(std::string_view bytes) {
  if (bytes.size() % kIdBytes != 0) {
    return Error(Code::kInvalidArgument, "sample set: its length is not a multiple of 4");
  }
  std::vector<SampleId> ids;
  ids.reserve(bytes.size() / kIdBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kIdBytes) {
    SampleId id = 0;
    for (std::size_t i = 0; i < kIdBytes; ++i) {
      id |= SampleId{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    }
    if (!ids.empty() && id <= ids.back()) {
      return Error(Code::kInvalidArgument, "sample set: its ids do not ascend");
    }
    ids.push_back(id);
  }
  if (!ids.empty() && BitmapIsShorter(ids.size(), ids.back())) {
    return Error(Code::kInvalidArgument, "sample set: should be a bitmap");
  }
  return ids;
}

Result<std::vector<SampleId>> DecodeBitmap(std::string_view bytes) {
  constexpr std::size_t kMaxBytes = (std::size_t{1} << 32U) / 8;
  if (bytes.empty() || bytes.size() > kMaxBytes || bytes.back() == 0) {
    return Error(Code::kInvalidArgument, "sample set: its bitmap does not end with its last id");
  }
  std::vector<SampleId> ids;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const auto byte = static_cast<unsigned char>(bytes[at]);
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (((byte >> bit) & 1U) != 0) ids.push_back(static_cast<SampleId>(at * 8 + bit));
    }
  }
  if (!BitmapIsShorter(ids.size(), ids.back())) {
    return Error(Code::kInvalidArgument, "sample set: should be a list of ids");
  }
  return ids;
}

}  // namespace

std::string EncodeSampleSet(const std::vector<SampleId>& ids) {
  DCHECK(std::ranges::is_sorted(ids));
  std::string out;
  if (ids.empty() || !BitmapIsShorter(ids.size(), ids.back())) {
    out.reserve(1 + ids.size() * kIdBytes);
    out.push_back(kIds);
    for (const SampleId id : ids)
      AppendId(id, out);
    return out;
  }
  out.assign(1 + BitmapBytes(ids.back()), '\0');
  out[0] = kBitmap;
  for (const SampleId id : ids) {
    char& byte = out[1 + id / 8];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | (1U << (id % 8)));
  }
  return out;
}

Result<std::vector<SampleId>> DecodeSampleSet(std::string_view bytes) {
  if (bytes.empty()) return Error(Code::kInvalidArgument, "sample set: empty");
  const char encoding = bytes.front();
  bytes.remove_prefix(1);
  if (encoding == kIds) return DecodeIds(bytes);
  if (encoding == kBitmap) return DecodeBitmap(bytes);
  return Error(Code::kInvalidArgument, "sample set: encoding " +
                                           std::to_string(static_cast<unsigned char>(encoding)) +
                                           " is not known, allowed: 0 (ids), 1 (bitmap)");
}

}  // namespace optcache::coordination
