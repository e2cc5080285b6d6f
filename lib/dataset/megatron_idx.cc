#include "dataset/megatron_idx.h"

#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "dataset/internal/little_endian.h"

namespace optcache::dataset {
namespace {

constexpr std::string_view kMegatronMagic("MMIDIDX\0\0", 9);
constexpr std::string_view kIdxEnding = ".idx";
constexpr size_t kMegatronHeadBytes = 9 + 8 + 1 + 8 + 8;

struct TokenType {
  std::string_view name;
  ByteCount bytes;
};

// By the code in the index. What 7 is has changed, see below.
constexpr std::array<TokenType, 9> kTokenTypes = {
    TokenType{"", 0},        TokenType{"uint8", 1}, TokenType{"int8", 1},
    TokenType{"int16", 2},   TokenType{"int32", 4}, TokenType{"int64", 8},
    TokenType{"float64", 8}, TokenType{"", 0},      TokenType{"uint16", 2}};

Status IdxError(std::string_view what) {
  return {Code::kInvalidArgument, std::string(what)};
}

Result<TokenType> TokenTypeOf(unsigned code) {
  if (code == 7) {
    return Error(
        IdxError("its type has the code 7, which is float32 to Megatron-LM and float64 to "
                 "programs before it: write a list of the ranges (format ranges)"));
  }
  if (code >= kTokenTypes.size() || kTokenTypes[code].bytes == 0)
    return Error(IdxError(fmt::format("its type has the code {}, which is not known", code)));
  return kTokenTypes[code];
}

}  // namespace

std::string MegatronBinPath(std::string_view idx) {
  if (!idx.ends_with(kIdxEnding)) return "";
  idx.remove_suffix(kIdxEnding.size());
  return std::string(idx) + ".bin";
}

Result<RangeIndex> ParseMegatronIdx(std::string_view idx, std::string bin) {
  if (idx.size() < kMegatronHeadBytes || !idx.starts_with(kMegatronMagic)) {
    return Error(
        IdxError("this is no index of Megatron-LM: it does not begin with MMIDIDX. Choose "
                 "the right ones by include"));
  }
  const char* const head = idx.data() + kMegatronMagic.size();
  if (const auto version = internal::Load<std::uint64_t>(head); version != 1)
    return Error(IdxError(fmt::format("it is of version {}, and only 1 is known", version)));
  ASSIGN_OR_RETURN(const TokenType type, TokenTypeOf(static_cast<unsigned char>(head[8])));
  const auto sequences = internal::Load<std::uint64_t>(head + 9);
  const auto documents = internal::Load<std::uint64_t>(head + 17);
  // Lengths, places and documents; of some indexes then a byte a sequence, its mode.
  const ByteCount rest = idx.size() - kMegatronHeadBytes;
  const bool has_room = sequences <= rest / 12 && documents <= rest / 8;
  const ByteCount needed = has_room ? 12 * sequences + 8 * documents : 0;
  if (!has_room || (rest != needed && rest != needed + sequences)) {
    return Error(
        IdxError(fmt::format("it has {} bytes, which do not fit its {} sequences and {} "
                             "documents: upload the file again",
                             idx.size(), sequences, documents)));
  }
  RangeIndex index{.objects = {}, .runs = {}};
  index.type = fmt::format("{} tokens", type.name);
  index.unit = "sequence";
  index.runs.reserve(sequences);
  const char* const lengths = idx.data() + kMegatronHeadBytes;
  const char* const places = lengths + 4 * sequences;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto length = internal::Load<std::int32_t>(lengths + 4 * i);
    const auto place = internal::Load<std::int64_t>(places + 8 * i);
    if (length < 0 || place < 0 || static_cast<ByteCount>(place) > kRangedObjectBytesMax) {
      return Error(
          IdxError(fmt::format("sequence {} has {} tokens from byte {} on: upload the "
                               "file again",
                               i, length, place)));
    }
    index.runs.push_back({.line = static_cast<std::uint32_t>(i),
                          .offset = static_cast<ByteCount>(place),
                          .length = static_cast<ByteCount>(length) * type.bytes});
  }
  if (sequences > 0) index.objects.push_back(std::move(bin));
  return index;
}

}  // namespace optcache::dataset
