#pragma once

// A bucket whose objects are those that a list in it names: docs/formats/key-list.md.

#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "storage/object_store.h"

namespace optcache::storage {

struct KeyListPlace {
  std::string bucket;  // its name, which an inventory says, too
  std::string prefix;  // of the keys that count; empty, or ends with a slash
  std::string key;     // of the list: of a text, or of the manifest.json of an S3 Inventory
  ByteCount text_bytes_max = 4_GiB;          // of a list that is a text
  ByteCount inventory_bytes_max = 64_GiB;    // of an inventory's files together, unpacked
  ByteCount inventory_piece_bytes = 16_MiB;  // of such a file, asked for at a time
};

// Lists by reading the list, so that the bucket is not asked for a listing; all else is what the
// inner store does. A text is held whole while it is read, and of an inventory's files a piece.
class ListedBucket final : public ObjectStore {
 public:
  // Opens all of the bucket, whatever the prefix, with retries: the list may lie anywhere in it. It
  // is opened for one listing.
  using OpenBucket = std::function<Result<std::unique_ptr<ObjectStore>>()>;

  ListedBucket(std::unique_ptr<ObjectStore> inner, KeyListPlace place, OpenBucket open_bucket);

  const std::string& name() const override { return inner_->name(); }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  // kInvalidArgument, kDataLoss: what is wrong with the list, and where. kNotFound: it names no
  // object below the prefix, or it or one of its files is not there. Else as Stat and Read.
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override { inner_->Shutdown(); }
  void VisitCounters(const CounterVisitor& visit) const override { inner_->VisitCounters(visit); }
  StoreHealth Health() const override { return inner_->Health(); }
  StoreWaits Waits() const override { return inner_->Waits(); }
  RateUse Rates() override { return inner_->Rates(); }
  void SetRates(const StoreRates& rates) override { inner_->SetRates(rates); }

 private:
  const std::unique_ptr<ObjectStore> inner_;
  const KeyListPlace place_;
  const OpenBucket open_bucket_;
};

}  // namespace optcache::storage
