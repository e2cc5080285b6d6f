#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "storage/object_store.h"
#include "storage/retrying_store.h"

namespace optcache::storage {

struct OpenOptions {
  std::string listing = "index.txt";  // of a web server, see listing_file.h
  unsigned concurrent_reads_max = 64;
  std::string ca_file;
  std::string keys_folder;  // of a web server, see http_keys.h
  RetryOptions retry;
};

// The store at `address`, with retries: a folder as a path or as file:///path, or a web server as
// http://host:port/prefix or https://. kInvalidArgument says which addresses there are.
Result<std::unique_ptr<ObjectStore>> OpenStore(std::string_view address,
                                               const OpenOptions& options = {},
                                               const Clock& clock = SystemClock());

}  // namespace optcache::storage
