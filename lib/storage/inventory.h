#pragma once

// S3 Inventory: a list of a bucket's objects that the store itself writes, as manifest.json and
// files of CSV that it names. docs/formats/key-list.md says what is read of it. Pure.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/key_list.h"

namespace optcache::storage {

inline constexpr ByteCount kInventoryManifestBytesMax = 16_MiB;
// Of a row, unpacked: a key takes 3 KiB at most, and what else S3 writes some hundred bytes.
inline constexpr size_t kInventoryRowBytesMax = 64_KiB;

// Where the columns stand that are read, from 0.
struct InventoryColumns {
  size_t count = 0;  // of all, also those that are not read
  size_t key = 0;
  size_t size = 0;
  std::optional<size_t> bucket{};
  std::optional<size_t> etag{};
  std::optional<size_t> is_latest{};
  std::optional<size_t> is_delete_marker{};
  friend bool operator==(const InventoryColumns&, const InventoryColumns&) = default;
};

struct InventoryFile {
  std::string key;
  ByteCount size = 0;  // as it lies in the bucket, packed
  friend bool operator==(const InventoryFile&, const InventoryFile&) = default;
};

struct Inventory {
  std::string bucket;  // the one that is listed
  InventoryColumns columns;
  std::vector<InventoryFile> files;
};

// Reads manifest.json. kInvalidArgument says what is wrong and what to do: another format than CSV,
// columns that are missing, or no manifest at all.
Result<Inventory> ParseInventory(std::string_view json);

// The rows of one of its files, unpacked: CSV of RFC 4180, whose rows may be cut anywhere between
// two calls. Older versions and delete markers are left out. Not thread-safe.
class InventoryRows {
 public:
  // Both outlive it.
  InventoryRows(const Inventory& inventory, KeyList& keys) : inventory_(inventory), keys_(keys) {}

  // kInvalidArgument names the row that is wrong.
  Status Add(std::string_view text);
  // At the end of the file: the last row needs no line break.
  Status Finish();

 private:
  enum class State : std::uint8_t {
    kFieldStart,
    kPlain,
    kQuoted,
    kQuoteInQuoted,   // it ends the field, or is the first of two
    kCarriageReturn,  // a line feed is to follow
  };

  Status TakeChar(char c);
  void BeginField();
  Status TakeRow();
  Status TakeFields();
  // "true" or "false"; `otherwise` where the inventory does not say.
  Result<bool> Flag(std::optional<size_t> column, bool otherwise) const;
  Status Wrong(std::string_view why) const;

  const Inventory& inventory_;
  KeyList& keys_;
  std::uint64_t row_ = 1;
  size_t row_bytes_ = 0;
  State state_ = State::kFieldStart;
  // Of this row: those before count_ have ended. The rest is memory to use again.
  std::vector<std::string> fields_{1};
  size_t count_ = 0;
};

}  // namespace optcache::storage
