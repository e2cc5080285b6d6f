#pragma once

// Many similar strings in little space: front-coded blocks of 16 (docs/formats/manifest.md, "String
// table"). Sorted paths of a class folder take about a third of their length.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::dataset {

inline constexpr std::uint32_t kStringsPerBlock = 16;
inline constexpr size_t kStringBytesMax = 4096;

// Appends strings to a table. Not thread-safe: a value.
class StringTableBuilder {
 public:
  // CHECKs that the string has at most kStringBytesMax bytes.
  void Add(std::string_view text);
  std::uint32_t size() const { return count_; }
  // The encoded table; nothing may follow.
  std::string Finish() &&;

 private:
  std::uint32_t count_ = 0;
  std::string block_offsets_;  // 8 bytes a block
  std::string text_;
  std::string last_;
};

// Looks into an encoded table that somebody else keeps: a short-lived view. Not thread-safe in
// itself; any number of views may share the bytes.
class StringTableView {
 public:
  using Visitor = std::function<Status(std::uint32_t index, std::string_view text)>;

  // Checks the head and the length, nothing of the text. kDataLoss says what is wrong and at which
  // byte of the table.
  static Result<StringTableView> Open(std::string_view encoded);

  std::uint32_t size() const { return count_; }

  // Calls `visit` with each string in turn and ends with its first error. kDataLoss if the text is
  // malformed; once ForEach went through, At cannot fail.
  Status ForEach(const Visitor& visit) const;

  // The string at `index` of a table that was found well formed. CHECKs both.
  std::string At(std::uint32_t index) const;

 private:
  StringTableView(std::string_view encoded, std::string_view text, std::uint32_t count)
      : encoded_(encoded), text_(text), count_(count) {}

  std::uint64_t BlockOffset(std::uint32_t block) const;
  Status VisitBlock(std::uint32_t block, const Visitor& visit) const;
  Status Malformed(std::string_view what, const char* at) const;

  std::string_view encoded_;
  std::string_view text_;
  std::uint32_t count_;
};

}  // namespace optcache::dataset
