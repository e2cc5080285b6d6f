#include "storage/open_store.h"

#include <fmt/format.h>

#include "storage/file_store.h"
#include "storage/http_store.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kFileScheme = "file://";

Result<std::unique_ptr<ObjectStore>> OpenBackEnd(std::string_view address,
                                                 const OpenOptions& options, const Clock& clock) {
  if (address.starts_with("http://") || address.starts_with("https://")) {
    return HttpStore::Open({.base_url = std::string(address),
                            .listing = options.listing,
                            .concurrent_reads_max = options.concurrent_reads_max,
                            .ca_file = options.ca_file,
                            .keys_folder = options.keys_folder},
                           clock);
  }
  if (address.starts_with(kFileScheme)) address.remove_prefix(kFileScheme.size());
  if (address.empty() || address.find("://") != std::string_view::npos) {
    return Error(Code::kInvalidArgument,
                 fmt::format("\"{}\" is no address of a source: give a folder, file:///folder, "
                             "http://host/prefix or https://host/prefix",
                             address));
  }
  return FileStore::Open({.root = std::string(address), .threads = options.concurrent_reads_max},
                         clock);
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenStore(std::string_view address, const OpenOptions& options,
                                               const Clock& clock) {
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> back_end, OpenBackEnd(address, options, clock));
  return std::make_unique<RetryingStore>(std::move(back_end), options.retry, clock);
}

}  // namespace optcache::storage
