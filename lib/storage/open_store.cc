// Makes a store of an address: the back end that the scheme names, and the layers around it.
//
// The idea: one place knows which layers there are and in which order (open_store.h has it); back
// ends know none of them. What a bucket's address leaves out comes from the process's surroundings,
// or, without ambient keys, from none: BucketAt decides that for the store and for those who only
// ask.

#include "storage/open_store.h"

#include <fmt/format.h>

#include "storage/autoindex.h"
#include "storage/aws_profile.h"
#include "storage/breaking_store.h"
#include "storage/file_store.h"
#include "storage/hedging_store.h"
#include "storage/http_store.h"
#include "storage/limiting_store.h"
#include "storage/listed_bucket.h"
#include "storage/s3_instance_keys.h"
#include "storage/s3_key_chain.h"
#include "storage/s3_store.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kFileScheme = "file://";

bool IsNetworkAddress(std::string_view address) {
  return address.starts_with("http://") || address.starts_with("https://") ||
         address.starts_with(kS3Scheme);
}

// Such a listing is of many pages, and asks by itself again for those that fail.
bool ListsByPages(std::string_view address, const OpenOptions& options) {
  return address.starts_with(kS3Scheme) ||
         (IsNetworkAddress(address) && options.listing == kAutoindexListing);
}

// Reads and their hedges.
unsigned RequestsAtATime(std::string_view address, const OpenOptions& options) {
  const bool hedges = IsNetworkAddress(address) && options.hedges.extra_share > 0;
  return options.concurrent_reads_max +
         (hedges ? static_cast<unsigned>(options.hedges.running_max) : 0);
}

Result<std::unique_ptr<ObjectStore>> OpenBackEnd(std::string_view address,
                                                 const OpenOptions& options, const Clock& clock) {
  if (address.starts_with("http://") || address.starts_with("https://")) {
    return HttpStore::Open({.base_url = std::string(address),
                            .listing = options.listing.value_or(kListingFile),
                            .concurrent_reads_max = RequestsAtATime(address, options),
                            .patience = options.retry.patience,
                            .first_patience = options.retry.first_patience,
                            .seed = options.retry.seed,
                            .ca_file = options.ca_file,
                            .keys_folder = options.keys_folder},
                           clock);
  }
  if (address.starts_with(kFileScheme)) address.remove_prefix(kFileScheme.size());
  if (address.empty() || address.find("://") != std::string_view::npos) {
    return Error(Code::kInvalidArgument,
                 fmt::format("\"{}\" is no address of a source: give a folder, file:///folder, "
                             "http://host/prefix, https://host/prefix or s3://bucket/prefix",
                             address));
  }
  return FileStore::Open({.root = std::string(address), .threads = options.concurrent_reads_max},
                         clock);
}

// The layers that open_store.h describes.
std::unique_ptr<ObjectStore> InLayers(std::unique_ptr<ObjectStore> back_end,
                                      std::string_view address, const OpenOptions& options,
                                      const Clock& clock) {
  auto limiting = std::make_unique<LimitingStore>(
      std::move(back_end),
      LimitingOptions{.gate = {.concurrency = {.max = RequestsAtATime(address, options)},
                               .rates = options.rates}},
      clock);
  LimitingStore& limits = *limiting;
  std::unique_ptr<ObjectStore> store = std::move(limiting);
  if (IsNetworkAddress(address)) {
    store = std::make_unique<HedgingStore>(
        std::move(store), options.hedges, [&limits] { return limits.HasRoom(); }, clock);
  }
  store = std::make_unique<BreakingStore>(std::move(store), options.breaker, clock);
  RetryOptions retry = options.retry;
  if (ListsByPages(address, options)) retry.repeats_lists = false;
  return std::make_unique<RetryingStore>(std::move(store), retry, clock);
}

Result<std::unique_ptr<ObjectStore>> OpenBucket(const S3Address& bucket, const OpenOptions& options,
                                                const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> back_end,
                   S3Store::Open({.address = bucket,
                                  .concurrent_reads_max = RequestsAtATime(kS3Scheme, options),
                                  .patience = options.retry.patience,
                                  .first_patience = options.retry.first_patience,
                                  .seed = options.retry.seed,
                                  .ca_file = options.ca_file,
                                  .keys_folder = options.keys_folder,
                                  .ambient_keys = options.ambient_keys},
                                 clock));
  return InLayers(std::move(back_end), kS3Scheme, options, clock);
}

Result<std::unique_ptr<ObjectStore>> OpenAddressOfBucket(std::string_view address,
                                                         const OpenOptions& options,
                                                         const Clock& clock) {
  if (options.listing) {
    return Error(Code::kInvalidArgument,
                 "--listing is of a web server: for the list of a bucket write &listing=KEY (or "
                 "?listing=KEY) in the address");
  }
  ASSIGN_OR_RETURN(const S3Address bucket, BucketAt(address, options));
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, OpenBucket(bucket, options, clock));
  if (bucket.listing.empty()) return store;
  S3Address whole = bucket;
  whole.prefix.clear();
  OpenOptions of_list = options;
  of_list.hedges.extra_share = 0;  // a list may have gigabytes
  of_list.rates = {};
  return std::make_unique<ListedBucket>(
      std::move(store),
      KeyListPlace{.bucket = bucket.bucket, .prefix = bucket.prefix, .key = bucket.listing},
      [whole, of_list, &clock] { return OpenBucket(whole, of_list, clock); });
}

// A process without any surroundings.
std::optional<std::string> NoEnvironment(const char* /*name*/) {
  return std::nullopt;
}

}  // namespace

Result<S3Address> BucketAt(std::string_view address, const OpenOptions& options) {
  if (options.ambient_keys) {
    ASSIGN_OR_RETURN(
        const Environment environment,
        WithAwsProfile(ProcessEnvironment, {.own_keys = !options.keys_folder.empty()}));
    return ParseS3Address(address, environment);
  }
  ASSIGN_OR_RETURN(S3Address bucket, ParseS3Address(address, NoEnvironment));
  if (!bucket.web_identity()) return bucket;
  return Error(Code::kInvalidArgument,
               "the address of the bucket: token-file names a token of this process, which is not "
               "to be used for it (--no-ambient-keys)");
}

Result<bool> IsReadWithoutKeys(const S3Address& bucket, const OpenOptions& options) {
  if (bucket.requester_pays || bucket.web_identity() || !options.keys_folder.empty()) return false;
  if (!options.ambient_keys) return true;
  ASSIGN_OR_RETURN(const std::optional<S3CustomerKey> customer_key,
                   CustomerKeyOfEnvironment(ProcessEnvironment));
  if (customer_key) return false;
  ASSIGN_OR_RETURN(const std::unique_ptr<S3CredentialSource> keys,
                   OpenKeyChain(ProcessEnvironment, MachineVendor(), SystemClock()));
  return keys->anonymous();
}

Result<std::string> CaFileOfBucket(const OpenOptions& options) {
  if (!options.ca_file.empty() || !options.ambient_keys) return options.ca_file;
  ASSIGN_OR_RETURN(const Environment environment,
                   WithAwsProfile(ProcessEnvironment, {.own_keys = true}));
  return environment("AWS_CA_BUNDLE").value_or("");
}

Result<std::unique_ptr<ObjectStore>> OpenStore(std::string_view address, const OpenOptions& options,
                                               const Clock& clock) {
  if (address.starts_with(kS3Scheme)) return OpenAddressOfBucket(address, options, clock);
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> back_end, OpenBackEnd(address, options, clock));
  return InLayers(std::move(back_end), address, options, clock);
}

}  // namespace optcache::storage
