#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "storage/http_keys.h"
#include "storage/object_store.h"

namespace optcache::storage {

namespace internal {
class HttpClient;
struct HttpRequest;
}  // namespace internal

struct HttpStoreOptions {
  std::string base_url;  // http:// or https://, percent-encoded, without query
  // Lists the objects, see listing_file.h; "autoindex": the server's pages of folders do, see
  // autoindex.h.
  std::string listing = "index.txt";
  unsigned concurrent_reads_max = 64;
  size_t waiting_reads_max = 1024;
  ByteCount listing_bytes_max = 4_GiB;
  Duration connect_timeout = std::chrono::seconds(5);
  // With the page of a folder, see page_retries.h.
  Duration patience = std::chrono::minutes(10);
  Duration first_patience = std::chrono::seconds(30);
  std::uint64_t seed = 0;
  std::string ca_file;      // certificates to trust instead of the system's
  std::string keys_folder;  // see http_keys.h, whose ca.crt counts before ca_file; empty: no keys
};

// Objects of a web server, read by HTTP/1.1 over connections that are kept. A read names the ETag
// of the manifest in If-Match and compares what the answer says of size and version, so that bytes
// of another version are never taken for the listed one. The proxy variables of the environment
// apply. Keys go to base_url's scheme, host and port alone, in clear if that is http.
class HttpStore final : public ObjectStore {
 public:
  // kInvalidArgument if the address is none, or has credentials, a query or a fragment in it.
  static Result<std::unique_ptr<HttpStore>> Open(HttpStoreOptions options,
                                                 const Clock& clock = SystemClock());
  ~HttpStore() override;

  const std::string& name() const override { return options_.base_url; }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override;
  void VisitCounters(const CounterVisitor& visit) const override;

 private:
  HttpStore(HttpStoreOptions options, const Clock& clock);
  std::string UrlOf(std::string_view object) const;
  Result<internal::HttpRequest> RequestFor(std::string_view object, Deadline deadline);
  Result<std::string> FetchText(const std::string& object, ByteCount bytes_max, Deadline deadline);
  Result<ObjectListing> ListFolders(Deadline deadline, const ListProgress& progress);

  const HttpStoreOptions options_;
  const Clock& clock_;
  HttpKeyFolder keys_;
  std::unique_ptr<internal::HttpClient> client_;
};

}  // namespace optcache::storage
