// Packs lists of ids to as many bits as the dataset's ids need, and unpacks them.
//
// The idea: a header says the bits, the number of ranks and the length of each rank's list; then
// the packed lists follow, each from a whole byte on. Because each list begins at a byte, lists of
// several ranks are joined by joining bytes, without unpacking them (JoinLists). The width must be
// that of the dataset, and the unused bits of a list's last byte must be zero: the same ids have
// one encoding, so a digest names them.
//
// ParseLists checks everything but the ids, and only borrows the bytes. The ids are checked where
// they are unpacked, in PassOrder and CheckIds.

#include "sampler/id_list.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace optcache::sampler {
namespace {

constexpr std::string_view kMagic = "OCLIST01";
constexpr std::size_t kFixedBytes = 16;  // magic, bits, ranks

Status Malformed(const std::string& what) {
  return {Code::kInvalidArgument, "list of ids: " + what};
}

void AppendNumber(std::uint64_t value, std::size_t bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes; ++i)
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
}

std::uint64_t NumberAt(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

// Takes ids off their bits.
class Unpacker {
 public:
  Unpacker(std::string_view packed, std::uint32_t bits)
      : packed_(packed), bits_(bits), mask_((std::uint64_t{1} << bits) - 1) {}

  SampleId Next() {
    while (held_ < bits_) {
      buffer_ |= std::uint64_t{static_cast<unsigned char>(packed_[at_++])} << held_;
      held_ += 8;
    }
    const auto id = static_cast<SampleId>(buffer_ & mask_);
    buffer_ >>= bits_;
    held_ -= bits_;
    return id;
  }

 private:
  std::string_view packed_;
  std::size_t at_ = 0;
  std::uint64_t buffer_ = 0;  // fewer than bits_ + 8 bits: at most 39
  std::uint32_t held_ = 0;
  std::uint32_t bits_;
  std::uint64_t mask_;
};

std::string Header(std::uint32_t bits, std::span<const std::uint64_t> lengths) {
  std::string out(kMagic);
  AppendNumber(bits, 4, out);
  AppendNumber(lengths.size(), 4, out);
  for (const std::uint64_t length : lengths)
    AppendNumber(length, 8, out);
  return out;
}

Status OutOfRange(std::size_t rank, SampleId id, std::uint64_t samples) {
  return Malformed("rank " + std::to_string(rank) + " names sample " + std::to_string(id) +
                   ", there are " + std::to_string(samples));
}

}  // namespace

std::uint32_t BitsFor(std::uint64_t samples) {
  return std::clamp<std::uint32_t>(
      samples == 0 ? 1 : static_cast<std::uint32_t>(std::bit_width(samples - 1)), 1, 32);
}

std::uint64_t PackedBytes(std::uint64_t ids, std::uint32_t bits) {
  return (ids * bits + 7) / 8;
}

std::string PackIds(std::span<const SampleId> ids, std::uint32_t bits) {
  std::string out;
  out.reserve(static_cast<std::size_t>(PackedBytes(ids.size(), bits)));
  std::uint64_t buffer = 0;
  std::uint32_t held = 0;
  for (const SampleId id : ids) {
    buffer |= std::uint64_t{id} << held;
    for (held += bits; held >= 8; held -= 8) {
      out.push_back(static_cast<char>(buffer & 0xffU));
      buffer >>= 8U;
    }
  }
  if (held > 0) out.push_back(static_cast<char>(buffer & 0xffU));
  return out;
}

std::string ListHeader(std::uint64_t ids, std::uint32_t bits) {
  return Header(bits, std::span(&ids, 1));
}

std::string EncodeList(std::span<const SampleId> ids, std::uint32_t bits) {
  return ListHeader(ids.size(), bits) + PackIds(ids, bits);
}

Result<IdLists> ParseLists(std::string_view bytes, std::uint64_t samples) {
  if (bytes.size() > kMaxListBytes) return Error(Malformed("larger than 64 MiB"));
  if (bytes.size() < kFixedBytes || !bytes.starts_with(kMagic)) {
    return Error(Malformed("it does not begin with OCLIST01"));
  }
  IdLists lists{.bits = static_cast<std::uint32_t>(NumberAt(bytes, 8, 4)), .lengths{}, .packed{}};
  const std::uint64_t ranks = NumberAt(bytes, 12, 4);
  if (lists.bits != BitsFor(samples)) {
    return Error(Malformed("ids of " + std::to_string(lists.bits) + " bits, those of " +
                           std::to_string(samples) + " samples have " +
                           std::to_string(BitsFor(samples))));
  }
  if (ranks == 0 || ranks > kMaxListRanks || bytes.size() - kFixedBytes < 8 * ranks) {
    return Error(Malformed(std::to_string(ranks) + " ranks do not fit"));
  }
  std::size_t at = kFixedBytes + static_cast<std::size_t>(8 * ranks);
  std::uint64_t left = MaxListIds(samples);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t length = NumberAt(bytes, kFixedBytes + 8 * rank, 8);
    const std::uint64_t size = PackedBytes(std::min(length, left), lists.bits);
    if (length > left) {
      return Error(Malformed("more than " + std::to_string(MaxListIds(samples)) +
                             " ids, which is what is planned of " + std::to_string(samples) +
                             " samples"));
    }
    left -= length;
    if (length == 0 || size > bytes.size() - at) {
      return Error(Malformed("rank " + std::to_string(rank) + " has " + std::to_string(length) +
                             " ids, which do not fit"));
    }
    const std::string_view packed = bytes.substr(at, static_cast<std::size_t>(size));
    const auto used = static_cast<std::uint32_t>(length * lists.bits % 8);
    if (used != 0 && (static_cast<unsigned char>(packed.back()) >> used) != 0) {
      return Error(Malformed("rank " + std::to_string(rank) + " does not end with zeros"));
    }
    lists.lengths.push_back(length);
    lists.packed.push_back(packed);
    at += packed.size();
  }
  if (at != bytes.size()) return Error(Malformed("it goes on after its last id"));
  return lists;
}

Result<std::string> JoinLists(std::span<const std::string_view> ranks, std::uint64_t samples) {
  std::vector<IdLists> parsed;
  std::vector<std::uint64_t> lengths;
  std::size_t size = kFixedBytes;
  for (const std::string_view rank : ranks) {
    ASSIGN_OR_RETURN(IdLists lists, ParseLists(rank, samples));
    size += rank.size();
    lengths.insert(lengths.end(), lists.lengths.begin(), lists.lengths.end());
    parsed.push_back(std::move(lists));
  }
  if (size > kMaxListBytes || lengths.empty() || lengths.size() > kMaxListRanks) {
    return Error(Malformed("the lists of " + std::to_string(lengths.size()) + " ranks take " +
                           std::to_string(size) + " bytes together, 64 MiB are taken"));
  }
  if (std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}) > MaxListIds(samples)) {
    return Error(Malformed("the lists of all ranks together have more than " +
                           std::to_string(MaxListIds(samples)) + " ids"));
  }
  std::string out = Header(BitsFor(samples), lengths);
  out.reserve(size);
  for (const IdLists& lists : parsed) {
    for (const std::string_view packed : lists.packed)
      out += packed;
  }
  return out;
}

std::uint64_t PassLength(const IdLists& lists) {
  return *std::ranges::min_element(lists.lengths) * lists.lengths.size();
}

Result<std::vector<SampleId>> PassOrder(const IdLists& lists, std::uint64_t samples,
                                        const StopCheck& stop) {
  const std::size_t ranks = lists.lengths.size();
  std::vector<SampleId> order;
  Fill(order, static_cast<std::size_t>(PassLength(lists)), 0, stop);
  std::size_t read = 0;
  for (std::size_t rank = 0; rank < ranks && !stop.Now(); ++rank) {
    Unpacker ids(lists.packed[rank], lists.bits);
    for (std::size_t position = rank; position < order.size() && !stop.At(read++);
         position += ranks) {
      order[position] = ids.Next();
      if (order[position] >= samples) return Error(OutOfRange(rank, order[position], samples));
    }
  }
  if (stop.Now()) return Error(Code::kCancelled, "list of ids: not wanted any more");
  return order;
}

Status CheckIds(const IdLists& lists, std::uint64_t samples, const StopCheck& stop) {
  for (std::size_t rank = 0; rank < lists.lengths.size(); ++rank) {
    Unpacker ids(lists.packed[rank], lists.bits);
    for (std::uint64_t i = 0; i < lists.lengths[rank] && !stop.At(i); ++i) {
      if (const SampleId id = ids.Next(); id >= samples) return OutOfRange(rank, id, samples);
    }
  }
  return OkStatus();
}

}  // namespace optcache::sampler
