#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "storage/object_store.h"
#include "storage/s3_address.h"
#include "storage/s3_credentials.h"
#include "storage/s3_listing.h"

namespace optcache::storage {

namespace internal {
class HttpClient;
struct HttpDialect;
struct HttpRequest;
struct HttpResponse;
struct S3PageRequest;
}  // namespace internal

struct S3StoreOptions {
  S3Address address;
  unsigned concurrent_reads_max = 64;
  size_t waiting_reads_max = 1024;
  unsigned concurrent_lists_max = 16;
  Duration connect_timeout = std::chrono::seconds(5);
  Duration page_timeout = std::chrono::minutes(1);  // of one page of a listing
  Duration patience = std::chrono::minutes(10);     // with a page, see page_retries.h
  Duration first_patience = std::chrono::seconds(30);
  std::uint64_t seed = 0;
  // Certificates to trust instead of the system's. Empty: those of AWS_CA_BUNDLE or of the
  // profile's ca_bundle, if ambient keys count.
  std::string ca_file;
  std::string keys_folder;  // see s3_credentials.h, whose ca.crt counts before ca_file
  // Leads to keys where there is no folder and no web identity (s3_key_chain.h), and to
  // certificates, if ambient keys count; else requests are not signed then.
  Environment environment = ProcessEnvironment;
  bool ambient_keys = true;
};

// A bucket of S3 or of a server that speaks its protocol: GET, HEAD and ListObjectsV2, each signed,
// over connections that are kept. That an address names a list of keys means nothing here
// (listed_bucket.h). A read names the ETag of the manifest in If-Match; what came is compared with
// checksums that the store tells (s3_checksums.h). Redirections are errors that say where the
// bucket is. The proxy variables of the environment apply. Keys are sent to nobody: they
// sign; but a customer's key (s3_customer_key.h), with each request for an object, and by https or
// to this machine itself alone.
class S3Store final : public ObjectStore {
 public:
  // kInvalidArgument: keys that are none, in the environment or in files that it names, a profile
  // that is not there, or a customer's key there that would be sent in clear.
  static Result<std::unique_ptr<S3Store>> Open(S3StoreOptions options,
                                               const Clock& clock = SystemClock());
  ~S3Store() override;

  const std::string& name() const override { return name_; }
  Status Read(ReadRequest request, ReadCallback done) override;
  Result<ObjectInfo> Stat(const std::string& object, Deadline deadline) override;
  Result<ObjectListing> List(Deadline deadline, const ListProgress& progress) override;
  void Shutdown() override;
  void VisitCounters(const CounterVisitor& visit) const override;

 private:
  S3Store(S3StoreOptions options, const Clock& clock);
  bool FolderBringsCredentials() const;
  Status UseEnvironment();
  // kPermissionDenied: there is one that is none, or that would be sent in clear.
  Result<std::optional<S3CustomerKey>> CustomerKeyNow(const S3Keys& of_folder) const;
  Result<S3Credentials> CredentialsNow();
  bool Expired(const Status& why) const;
  // A request with the signature of `credentials`, as of now.
  Result<internal::HttpRequest> Signed(const S3Credentials& credentials, bool head,
                                       std::string_view path, const QueryFields& query,
                                       Deadline deadline);
  Status SendRead(const S3Credentials& credentials, ReadRequest request, ReadCallback done);
  // `keys_expired` says whether the answer was that, and is kUnavailable then.
  Result<S3Page> FetchPage(const internal::S3PageRequest& page, Deadline deadline,
                           std::atomic<bool>& keys_expired);
  std::string PathOf(std::string_view object) const;
  internal::HttpDialect Dialect() const;

  const S3StoreOptions options_;
  const Clock& clock_;
  const std::string name_;
  const S3Place place_;
  std::shared_ptr<S3KeyFolder> folder_;              // null: there is none
  std::shared_ptr<S3CredentialSource> credentials_;  // the folder itself, perhaps
  std::optional<S3CustomerKey> customer_key_;        // of the environment
  std::unique_ptr<internal::HttpClient> client_;
};

}  // namespace optcache::storage
