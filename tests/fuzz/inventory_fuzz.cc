// An inventory may be anything: manifest.json, then, behind a line of three dashes, what its files
// unpack to. Wherever the rows are cut, the same keys come of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "dataset/manifest.h"
#include "dataset/validator.h"
#include "storage/inventory.h"

namespace {

using optcache::Status;
using optcache::storage::Inventory;
using optcache::storage::InventoryRows;
using optcache::storage::KeyList;
using optcache::storage::ObjectListing;

constexpr std::string_view kCut = "\n---\n";

struct Outcome {
  Status status;
  ObjectListing listing;
};

Outcome ReadRows(const Inventory& inventory, std::string_view text, size_t piece) {
  KeyList keys("a/", "a/manifest.json");
  InventoryRows rows(inventory, keys);
  Status status;
  while (status.ok() && !text.empty()) {
    status = rows.Add(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
  }
  if (status.ok()) status = rows.Finish();
  return {.status = std::move(status), .listing = std::move(keys).Take()};
}

void CheckRows(const Inventory& inventory, std::string_view text) {
  const Outcome whole = ReadRows(inventory, text, text.size());
  const Outcome cut = ReadRows(inventory, text, 3);
  CHECK(whole.status.code() == cut.status.code());
  CHECK(whole.listing.objects.size() == cut.listing.objects.size());
  if (!whole.status.ok()) CHECK(whole.status.code() == optcache::Code::kInvalidArgument);
  for (size_t i = 0; i < whole.listing.objects.size(); ++i) {
    const auto& object = whole.listing.objects[i];
    CHECK(object.path == cut.listing.objects[i].path);
    CHECK(optcache::dataset::CheckObjectPath(object.path).ok());
    CHECK(optcache::dataset::CheckETag(object.info->validator.etag).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t at = std::min(input.find(kCut), input.size());
  const auto inventory = optcache::storage::ParseInventory(input.substr(0, at));
  if (!inventory) {
    CHECK(inventory.error().code() == optcache::Code::kInvalidArgument);
    return 0;
  }
  CHECK(inventory->columns.key < inventory->columns.count);
  CHECK(inventory->columns.size < inventory->columns.count);
  CheckRows(*inventory, input.substr(std::min(at + kCut.size(), input.size())));
  return 0;
}
