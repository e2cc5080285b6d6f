// Front-codes strings: a string says how many bytes it shares with the one before, and the rest.
//
//   | count, 16 | offset of each block, and of the end | text of block 0 | text of block 1 | ...
//   a string in a block:  shared, rest (varints) | bytes of the rest
//
// The idea: neighbours in a sorted list begin alike. A block of 16 begins with a whole string, so a
// lookup finds its block by an offset and decodes 16 strings at most.
//
// Invariants: a number has one encoding, of one byte or two, and no string is longer than
// kStringBytesMax. ForEach visits every byte of the text and finds each block to end where the next
// begins; after that At cannot fail.

#include "dataset/string_table.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"
#include "dataset/internal/little_endian.h"

namespace optcache::dataset {
namespace {

using internal::Append;
using internal::Load;

constexpr size_t kHeadBytes = 8;
constexpr std::uint64_t kOffsetBytes = 8;

std::uint64_t BlocksOf(std::uint32_t strings) {
  return (std::uint64_t{strings} + kStringsPerBlock - 1) / kStringsPerBlock;
}

void AppendVarint(std::string& out, size_t value) {
  if (value >= 0x80) {
    out += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  out += static_cast<char>(value);
}

// Takes a varint of one or two bytes off the front.
std::optional<size_t> TakeVarint(std::string_view& in) {
  if (in.empty()) return std::nullopt;
  const auto low = static_cast<unsigned char>(in[0]);
  in.remove_prefix(1);
  if (low < 0x80) return low;
  if (in.empty()) return std::nullopt;
  const auto high = static_cast<unsigned char>(in[0]);
  in.remove_prefix(1);
  if (high == 0 || high >= 0x80) return std::nullopt;  // one way only to write a number
  return (size_t{high} << 7U) | (low & 0x7fU);
}

// Replaces `text` by the next string of a block; false if the bytes are malformed.
bool TakeString(std::string_view& in, std::string& text) {
  const std::optional<size_t> shared = TakeVarint(in);
  const std::optional<size_t> rest = TakeVarint(in);
  if (!shared || !rest || *shared > text.size() || *rest > in.size()) return false;
  if (*shared + *rest > kStringBytesMax) return false;
  text.resize(*shared);
  text += in.substr(0, *rest);
  in.remove_prefix(*rest);
  return true;
}

}  // namespace

void StringTableBuilder::Add(std::string_view text) {
  CHECK(text.size() <= kStringBytesMax);
  size_t shared = 0;
  if (count_ % kStringsPerBlock == 0) {
    Append<std::uint64_t>(block_offsets_, text_.size());
  } else {
    const size_t limit = std::min(text.size(), last_.size());
    while (shared < limit && text[shared] == last_[shared])
      ++shared;
  }
  AppendVarint(text_, shared);
  AppendVarint(text_, text.size() - shared);
  text_ += text.substr(shared);
  last_ = text;
  ++count_;
}

std::string StringTableBuilder::Finish() && {
  std::string table;
  table.reserve(kHeadBytes + block_offsets_.size() + kOffsetBytes + text_.size());
  Append<std::uint32_t>(table, count_);
  Append<std::uint32_t>(table, kStringsPerBlock);
  table += block_offsets_;
  Append<std::uint64_t>(table, text_.size());
  table += text_;
  return table;
}

Result<StringTableView> StringTableView::Open(std::string_view encoded) {
  if (encoded.size() < kHeadBytes) {
    return Error(Code::kDataLoss, "string table: ends within its head");
  }
  const auto count = Load<std::uint32_t>(encoded.data());
  if (Load<std::uint32_t>(encoded.data() + 4) != kStringsPerBlock) {
    return Error(Code::kDataLoss, "string table: not 16 strings a block, at byte 4");
  }
  const std::uint64_t offset_bytes = (BlocksOf(count) + 1) * kOffsetBytes;
  if (encoded.size() - kHeadBytes < offset_bytes) {
    return Error(Code::kDataLoss,
                 fmt::format("string table: {} strings do not fit in {} bytes, at byte 0", count,
                             encoded.size()));
  }
  const StringTableView view(encoded, encoded.substr(kHeadBytes + offset_bytes), count);
  if (view.BlockOffset(static_cast<std::uint32_t>(BlocksOf(count))) != view.text_.size()) {
    return Error(Code::kDataLoss,
                 fmt::format("string table: text is not as long as said, at byte {}",
                             kHeadBytes + offset_bytes - kOffsetBytes));
  }
  return view;
}

std::uint64_t StringTableView::BlockOffset(std::uint32_t block) const {
  return Load<std::uint64_t>(encoded_.data() + kHeadBytes + block * kOffsetBytes);
}

Status StringTableView::Malformed(std::string_view what, const char* at) const {
  return {Code::kDataLoss, fmt::format("string table: {}, at byte {}", what, at - encoded_.data())};
}

Status StringTableView::VisitBlock(std::uint32_t block, const Visitor& visit) const {
  const std::uint64_t begin = BlockOffset(block);
  const std::uint64_t end = BlockOffset(block + 1);
  if (begin > end || end > text_.size() || (block == 0 && begin != 0)) {
    return Malformed("block offset", encoded_.data() + kHeadBytes + block * kOffsetBytes);
  }
  std::string_view in = text_.substr(begin, end - begin);
  std::string text;
  const std::uint32_t first = block * kStringsPerBlock;
  const std::uint32_t strings = std::min(kStringsPerBlock, count_ - first);
  for (std::uint32_t i = 0; i < strings; ++i) {
    const char* const at = in.data();
    if (!TakeString(in, text)) return Malformed("string", at);
    RETURN_IF_ERROR(visit(first + i, text));
  }
  if (!in.empty()) return Malformed("bytes after the last string of a block", in.data());
  return OkStatus();
}

Status StringTableView::ForEach(const Visitor& visit) const {
  for (std::uint32_t block = 0; block < BlocksOf(count_); ++block) {
    RETURN_IF_ERROR(VisitBlock(block, visit));
  }
  return OkStatus();
}

std::string StringTableView::At(std::uint32_t index) const {
  CHECK(index < count_);
  const std::uint64_t begin = BlockOffset(index / kStringsPerBlock);
  CHECK(begin <= text_.size());
  std::string_view in = text_.substr(begin);
  std::string text;
  for (std::uint32_t i = 0; i <= index % kStringsPerBlock; ++i)
    CHECK(TakeString(in, text));
  return text;
}

}  // namespace optcache::dataset
