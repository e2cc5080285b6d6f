#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "storage/circuit_breaker.h"
#include "storage/hedge_policy.h"
#include "storage/object_store.h"
#include "storage/request_gate.h"
#include "storage/retrying_store.h"
#include "storage/s3_address.h"

namespace optcache::storage {

inline constexpr const char* kListingFile = "index.txt";

struct OpenOptions {
  // Of a web server, see listing_file.h. Unset: kListingFile. A bucket has its own in its address.
  std::optional<std::string> listing;
  unsigned concurrent_reads_max = 64;  // hedges come on top
  std::string ca_file;
  std::string keys_folder;  // of a web server or a bucket, see http_keys.h and s3_credentials.h
  // Of a bucket, without keys in its folder: keys of the environment, of AWS's files and of the
  // services of container and machine count. False where somebody else than the owner of those has
  // chosen the address.
  bool ambient_keys = true;
  RetryOptions retry;
  CircuitBreakerOptions breaker;
  HedgeOptions hedges;  // of network stores
  StoreRates rates;     // of this process at most: of all that it sends, but for listing
};

// The store at `address`: a folder as a path or as file:///path, a web server as
// http://host:port/prefix or https://, or a bucket as s3://bucket/prefix?…. The forms are those of
// docs/formats/address.md. kInvalidArgument says which addresses there are.
//
// It is made of layers, and a read passes them in this order:
//   retries             so that all below are asked once for each attempt; their budget is of what
//                       callers see
//   circuit breaker     below the retries, since it counts attempts; above all that costs time, so
//                       that a store which is gone is an error at once
//   hedges              of network stores: each attempt may become two requests. A folder is read
//                       from one disk or mount, where a second request waits for the same thing
//   limits              last, so that they hold for every request that the store gets
//   the back end        which knows nothing of all this
Result<std::unique_ptr<ObjectStore>> OpenStore(std::string_view address,
                                               const OpenOptions& options = {},
                                               const Clock& clock = SystemClock());

// What an "s3://…" address stands for there. kInvalidArgument as of ParseS3Address; and without
// ambient keys, an address with a web identity.
Result<S3Address> BucketAt(std::string_view address, const OpenOptions& options);

// Whether the store of that bucket sends no keys at all. kInvalidArgument: there are some that
// cannot be used, so that it is not opened.
Result<bool> IsReadWithoutKeys(const S3Address& bucket, const OpenOptions& options);

// The certificates that the store of a bucket trusts, unless a folder of keys has others; empty:
// the system's. kInvalidArgument: AWS's files are broken.
Result<std::string> CaFileOfBucket(const OpenOptions& options);

}  // namespace optcache::storage
