// Reads the list of a bucket's keys, a text or an S3 Inventory, with the bucket's own reads.
//
// The idea: a text is read whole. An inventory has many packed files, so each is read, unpacked and
// parsed piece by piece, and only its keys stay in memory. A text and manifest.json are read as the
// version that Stat told. Of the files only the size is known: gzip's checksum over all pieces
// proves that they are of one version.
//
// Limits bound what a wrong or hostile list can cost: the bytes of a text, those of an inventory
// when unpacked, and the length of a row (inventory.h).

#include "storage/listed_bucket.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "storage/internal/blocking_read.h"
#include "storage/internal/gunzip.h"
#include "storage/inventory.h"
#include "storage/key_list.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kInventoryManifest = "manifest.json";

bool IsInventory(std::string_view key) {
  const size_t slash = key.rfind('/');
  return key.substr(slash == std::string_view::npos ? 0 : slash + 1) == kInventoryManifest;
}

Status TooLong(ByteCount bytes, ByteCount limit) {
  return {Code::kInvalidArgument,
          fmt::format("it has {}, and the limit is {}", FormatBytes(bytes), FormatBytes(limit))};
}

// Reads one list. A value that lives as long as that takes.
class ListReader {
 public:
  ListReader(ObjectStore& bucket, const KeyListPlace& place, Deadline deadline,
             const ListProgress& progress)
      : bucket_(bucket),
        place_(place),
        deadline_(deadline),
        progress_(progress),
        keys_(place.prefix, place.key) {}

  Result<ObjectListing> Read() {
    RETURN_IF_ERROR(IsInventory(place_.key) ? AddInventory() : AddText());
    ObjectListing listing = std::move(keys_).Take();
    if (!listing.objects.empty() || !listing.unfit_keys.empty()) return listing;
    return Error(Code::kNotFound,
                 fmt::format("it names no objects below \"{}\"; each key is to begin with that",
                             place_.prefix));
  }

 private:
  // As the object was when it was asked for: its ETag and, where the store has one, its checksum
  // are compared.
  Result<std::string> ReadWhole(ByteCount bytes_max) {
    ASSIGN_OR_RETURN(const ObjectInfo info, bucket_.Stat(place_.key, deadline_));
    if (info.size > bytes_max) return Error(TooLong(info.size, bytes_max));
    std::string text(info.size, '\0');
    if (text.empty()) return text;
    RETURN_IF_ERROR(
        internal::ReadAndWait(bucket_, {.object = place_.key,
                                        .destination = std::as_writable_bytes(std::span(text)),
                                        .object_size = info.size,
                                        .validator = info.validator,
                                        .deadline = deadline_}));
    return text;
  }

  Status AddText() {
    ASSIGN_OR_RETURN(const std::string text, ReadWhole(place_.text_bytes_max));
    RETURN_IF_ERROR(AddKeysOfText(text, keys_));
    Tell();
    return OkStatus();
  }

  Status AddInventory() {
    ASSIGN_OR_RETURN(const std::string json, ReadWhole(kInventoryManifestBytesMax));
    ASSIGN_OR_RETURN(const Inventory inventory, ParseInventory(json));
    if (inventory.bucket != place_.bucket) {
      return {Code::kInvalidArgument,
              fmt::format("it lists the bucket \"{}\": give the inventory of \"{}\"",
                          inventory.bucket, place_.bucket)};
    }
    for (const InventoryFile& file : inventory.files) {
      Status added = AddFile(inventory, file);
      if (!added.ok()) return std::move(added).WithContext("its file " + file.key);
      Tell();
    }
    return OkStatus();
  }

  // gzip's own checksum is of the whole file, so pieces of two versions do not pass for one.
  Status AddFile(const Inventory& inventory, const InventoryFile& file) {
    InventoryRows rows(inventory, keys_);
    internal::Gunzip gunzip;
    const auto take = [&](std::string_view text) -> Status {
      unpacked_ += text.size();
      if (unpacked_ > place_.inventory_bytes_max) {
        return {Code::kInvalidArgument, fmt::format("the inventory is longer than the limit of {}",
                                                    FormatBytes(place_.inventory_bytes_max))};
      }
      return rows.Add(text);
    };
    std::string piece(std::min(file.size, place_.inventory_piece_bytes), '\0');
    for (ByteCount offset = 0; offset < file.size;) {
      const ByteCount length = std::min(file.size - offset, place_.inventory_piece_bytes);
      const auto into = std::as_writable_bytes(std::span(piece)).first(length);
      RETURN_IF_ERROR(internal::ReadAndWait(bucket_, {.object = file.key,
                                                      .offset = offset,
                                                      .destination = into,
                                                      .object_size = file.size,
                                                      .validator = {},
                                                      .deadline = deadline_}));
      RETURN_IF_ERROR(gunzip.Add(into, take));
      offset += length;
    }
    RETURN_IF_ERROR(gunzip.Finish());
    return rows.Finish();
  }

  void Tell() const {
    if (progress_) progress_(keys_.size());
  }

  ObjectStore& bucket_;
  const KeyListPlace& place_;
  const Deadline deadline_;
  const ListProgress& progress_;
  KeyList keys_;
  ByteCount unpacked_ = 0;
};

}  // namespace

ListedBucket::ListedBucket(std::unique_ptr<ObjectStore> inner, KeyListPlace place,
                           OpenBucket open_bucket)
    : inner_(std::move(inner)), place_(std::move(place)), open_bucket_(std::move(open_bucket)) {}

Status ListedBucket::Read(ReadRequest request, ReadCallback done) {
  return inner_->Read(std::move(request), std::move(done));
}

Result<ObjectInfo> ListedBucket::Stat(const std::string& object, Deadline deadline) {
  return inner_->Stat(object, deadline);
}

Result<ObjectListing> ListedBucket::List(Deadline deadline, const ListProgress& progress) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> bucket, open_bucket_());
  Result<ObjectListing> listing = ListReader(*bucket, place_, deadline, progress).Read();
  if (listing) return listing;
  return Error(
      std::move(listing).error().WithContext(fmt::format("the list {} of {}", place_.key, name())));
}

}  // namespace optcache::storage
