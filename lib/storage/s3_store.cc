// Reads a bucket: signs requests, and understands the answers of S3.
//
// The idea: every request asks for the credentials of now, since keys rotate and end. If a source
// must fetch them first, Read keeps the request in a callback and returns; Stat and pages of a
// listing block. What a read shares with a web server is internal/http_exchange.h; S3's own part is
// its Dialect: errors as XML, checksums of the whole object, and answers that say that keys have
// expired.
//
// Invariants: a customer's key goes only with requests for objects, and only where nobody on the
// way can read it. Expired keys are an error of their own, so that readers wait for newer keys
// instead of giving up; a listing asks for the page again.

#include "storage/s3_store.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/percent_encoding.h"
#include "dataset/manifest.h"
#include "storage/aws_profile.h"
#include "storage/internal/curl.h"
#include "storage/internal/http_exchange.h"
#include "storage/internal/s3_lister.h"
#include "storage/s3_checksums.h"
#include "storage/s3_error.h"
#include "storage/s3_instance_keys.h"
#include "storage/s3_key_chain.h"
#include "storage/s3_web_identity.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kS3KeysPerPage = "1000";
constexpr const char* kBucketRegionHeader = "x-amz-bucket-region";

std::string HeaderIn(const internal::HttpResponse& response, const std::string& name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? "" : found->second;
}

std::optional<WholeSums> SumsOfWhole(const internal::HttpResponse& response) {
  const std::vector<ToldSum> told = ParseS3Checksums(response.headers);
  if (told.empty()) return std::nullopt;
  return WholeSums(told);
}

bool KeysExpired(const internal::HttpResponse& response) {
  return response.http_status >= 400 && SaysThatKeysExpired(ParseS3Error(response.error_body));
}

std::string KeyInClear(std::string_view which, const S3Place& place) {
  return fmt::format(
      "{}: {} would be asked in clear text, and any machine on the way would see the "
      "key. Objects that are encrypted with a key of yours need https://; for others, unset it "
      "here",
      which, place.origin);
}

}  // namespace

Result<std::unique_ptr<S3Store>> S3Store::Open(S3StoreOptions options, const Clock& clock) {
  if (options.ca_file.empty() && options.ambient_keys) {
    ASSIGN_OR_RETURN(const Environment environment,
                     WithAwsProfile(options.environment, {.own_keys = true}));
    options.ca_file = environment("AWS_CA_BUNDLE").value_or("");
  }
  std::unique_ptr<S3Store> store(new S3Store(std::move(options), clock));
  RETURN_IF_ERROR(store->UseEnvironment());
  return store;
}

S3Store::S3Store(S3StoreOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      name_(options_.address.name()),
      place_(PlaceOf(options_.address)),
      client_(std::make_unique<internal::HttpClient>(
          internal::HttpClientOptions{.concurrent_max = std::max(options_.concurrent_reads_max,
                                                                 options_.concurrent_lists_max),
                                      .waiting_max = options_.waiting_reads_max,
                                      .connect_timeout = options_.connect_timeout},
          clock)) {
  if (!options_.keys_folder.empty())
    folder_ = std::make_shared<S3KeyFolder>(options_.keys_folder, clock);
  if (options_.address.web_identity()) {
    const Result<S3Keys> keys = folder_ ? folder_->keys() : S3Keys{};
    const std::string folder_ca = keys ? keys->ca_file : "";
    credentials_ = std::make_shared<S3WebIdentity>(
        S3WebIdentityOptions{.sts_endpoint = options_.address.sts_endpoint,
                             .role_arn = options_.address.role_arn,
                             .token_file = options_.address.token_file,
                             .ca_file = folder_ca.empty() ? options_.ca_file : folder_ca},
        clock);
  } else if (FolderBringsCredentials()) {
    credentials_ = folder_;
  }
}

S3Store::~S3Store() {
  Shutdown();
}

// One with a customer's key and no credentials leaves them to others; one that cannot be read now
// may have them soon.
bool S3Store::FolderBringsCredentials() const {
  if (!folder_) return false;
  const Result<S3Keys> keys = folder_->keys();
  return !keys || !keys->credentials.anonymous() || !keys->customer_key;
}

Status S3Store::UseEnvironment() {
  if (!options_.ambient_keys) {
    if (!credentials_) credentials_ = FixedCredentials({});
    return OkStatus();
  }
  if (!credentials_) {
    ASSIGN_OR_RETURN(credentials_, OpenKeyChain(options_.environment, MachineVendor(), clock_));
  }
  if (folder_) return OkStatus();
  ASSIGN_OR_RETURN(customer_key_, CustomerKeyOfEnvironment(options_.environment));
  if (customer_key_ && !place_.confidential())
    return {Code::kInvalidArgument, KeyInClear("OPTCACHE_SSE_CUSTOMER_KEY", place_)};
  return OkStatus();
}

Result<std::optional<S3CustomerKey>> S3Store::CustomerKeyNow(const S3Keys& of_folder) const {
  if (of_folder.customer_key && !place_.confidential())
    return Error(Code::kPermissionDenied, KeyInClear("sseCustomerKey", place_));
  return folder_ ? of_folder.customer_key : customer_key_;
}

internal::HttpDialect S3Store::Dialect() const {
  return {.error =
              [this](const internal::HttpResponse& response, std::string_view what) {
                const std::string bucket_region = HeaderIn(response, kBucketRegionHeader);
                return S3Status({.http_status = response.http_status,
                                 .error = ParseS3Error(response.error_body),
                                 .bucket_region = bucket_region,
                                 .asked_region = options_.address.region},
                                what);
              },
          .sums_of_whole = SumsOfWhole,
          .keys_expired = KeysExpired};
}

std::string S3Store::PathOf(std::string_view object) const {
  return fmt::format("{}/{}{}", place_.path, PercentEncodePath(options_.address.prefix),
                     PercentEncodePath(object));
}

Result<internal::HttpRequest> S3Store::Signed(const S3Credentials& credentials, bool head,
                                              std::string_view path, const QueryFields& query,
                                              Deadline deadline) {
  ASSIGN_OR_RETURN(const S3Keys keys, folder_ ? folder_->keys() : S3Keys{});
  ASSIGN_OR_RETURN(const std::optional<S3CustomerKey> customer_key, CustomerKeyNow(keys));
  const bool of_object = query.empty();
  std::vector<std::pair<std::string, std::string>> headers;
  if (customer_key && of_object) headers = CustomerKeyHeaders(*customer_key);
  const bool wants_checksums = !head && of_object;
  if (wants_checksums) headers.emplace_back("x-amz-checksum-mode", "ENABLED");
  if (options_.address.requester_pays) headers.emplace_back("x-amz-request-payer", "requester");
  internal::HttpRequest request = {
      .method = head ? internal::HttpRequest::Method::kHead : internal::HttpRequest::Method::kGet,
      .url = fmt::format("{}{}{}{}", place_.origin, path, query.empty() ? "" : "?",
                         QueryString(query)),
      .headers = SignedHeaders(
          {.method = head ? "HEAD" : "GET", .host = place_.host, .path = path, .query = query},
          std::move(headers), options_.address.region, clock_.UnixSeconds(), credentials),
      .follows_redirections = false,
      // A proxy would see the key.
      .uses_proxies = place_.encrypted() || !customer_key,
      .wanted_headers = {kBucketRegionHeader},
      .ca_file = keys.ca_file.empty() ? options_.ca_file : keys.ca_file,
      .deadline = deadline};
  if (wants_checksums)
    std::ranges::copy(S3ChecksumHeaders(), std::back_inserter(request.wanted_headers));
  // Not signed, since proxies and Google's own front change it. To others it is not sent: some
  // servers and proxies would then pack what they send. What comes is not unpacked here.
  if (of_object && place_.unpacks_gzip()) request.headers.emplace_back("Accept-Encoding: gzip");
  return request;
}

Status S3Store::Read(ReadRequest request, ReadCallback done) {
  RETURN_IF_ERROR(CheckReadRequest(request));
  struct Waiting {
    ReadRequest request;
    ReadCallback done;
  };
  // Shared: the callback that waits for keys is made before it is known whether it is needed.
  const auto waiting = std::make_shared<Waiting>(std::move(request), std::move(done));
  S3CredentialsCallback later = [this, waiting](const Result<S3Credentials>& credentials) {
    const auto end = [waiting](ReadOutcome outcome) { waiting->done(std::move(outcome)); };
    if (!credentials)
      return end({.status = credentials.error(), .keys_expired = Expired(credentials.error())});
    Status sent = SendRead(*credentials, waiting->request, end);
    if (!sent.ok()) end({.status = std::move(sent)});
  };
  ASSIGN_OR_RETURN(const std::optional<S3Credentials> now, credentials_->Get(later));
  if (!now) return OkStatus();
  return SendRead(*now, std::move(waiting->request), std::move(waiting->done));
}

Status S3Store::SendRead(const S3Credentials& credentials, ReadRequest request, ReadCallback done) {
  ASSIGN_OR_RETURN(internal::HttpRequest http,
                   Signed(credentials, false, PathOf(request.object), {}, request.deadline));
  std::ranges::move(internal::ReadHeaders(request), std::back_inserter(http.headers));
  return internal::SendRead(*client_, std::move(http), std::move(request), Dialect(),
                            std::move(done));
}

// What the source of keys has said: newer ones may come.
bool S3Store::Expired(const Status& why) const {
  return why.code() == Code::kPermissionDenied && credentials_->expired();
}

Result<S3Credentials> S3Store::CredentialsNow() {
  const auto ended = std::make_shared<std::promise<Result<S3Credentials>>>();
  std::future<Result<S3Credentials>> future = ended->get_future();
  S3CredentialsCallback later = [ended](Result<S3Credentials> credentials) {
    ended->set_value(std::move(credentials));
  };
  ASSIGN_OR_RETURN(std::optional<S3Credentials> now, credentials_->Get(later));
  if (now) return *std::move(now);
  return future.get();
}

Result<ObjectInfo> S3Store::Stat(const std::string& object, Deadline deadline) {
  RETURN_IF_ERROR(dataset::CheckObjectPath(object));
  ASSIGN_OR_RETURN(const S3Credentials credentials, CredentialsNow());
  ASSIGN_OR_RETURN(internal::HttpRequest request,
                   Signed(credentials, true, PathOf(object), {}, deadline));
  ASSIGN_OR_RETURN(const internal::HttpResponse response,
                   internal::SendAndWait(*client_, std::move(request)));
  return internal::InfoOf(response, object, Dialect());
}

Result<S3Page> S3Store::FetchPage(const internal::S3PageRequest& page, Deadline deadline,
                                  std::atomic<bool>& keys_expired) {
  keys_expired = false;
  QueryFields query = {
      {"list-type", "2"}, {"encoding-type", "url"}, {"max-keys", std::string(kS3KeysPerPage)}};
  if (!page.prefix.empty()) query.emplace_back("prefix", page.prefix);
  if (!page.start_after.empty()) query.emplace_back("start-after", page.start_after);
  if (page.roll_up) query.emplace_back("delimiter", "/");
  if (!page.token.empty()) query.emplace_back("continuation-token", page.token);
  // A page is asked for again, perhaps with newer keys.
  const auto keys_to_come = [&](const Status& why) {
    keys_expired = true;
    return Error(Code::kUnavailable, why.message());
  };
  const Result<S3Credentials> credentials = CredentialsNow();
  if (!credentials && Expired(credentials.error())) return keys_to_come(credentials.error());
  RETURN_IF_ERROR(credentials);
  ASSIGN_OR_RETURN(internal::HttpRequest request,
                   Signed(*credentials, false, place_.path + "/", query, deadline));
  std::string text;
  request.take_body = [&](int /*http_status*/, ByteSpan piece) {
    text += AsText(piece);
    return text.size() <= kS3PageBytesMax;
  };
  ASSIGN_OR_RETURN(const internal::HttpResponse response,
                   internal::SendAndWait(*client_, std::move(request)));
  Status answered = internal::CheckAnswer(response, "listing " + name_, Dialect());
  if (!answered.ok() && KeysExpired(response)) return keys_to_come(answered);
  RETURN_IF_ERROR(std::move(answered));
  return ParseS3Page(text);
}

Result<ObjectListing> S3Store::List(Deadline deadline, const ListProgress& progress) {
  std::atomic<bool> keys_expired = false;  // as the last page that failed had it
  const auto fetch = [&](const internal::S3PageRequest& page) {
    const Deadline page_deadline = Deadline::After(clock_, options_.page_timeout);
    return FetchPage(page, Deadline(std::min(deadline.at(), page_deadline.at())), keys_expired);
  };
  Result<ObjectListing> listing =
      internal::ListBucket({.prefix = options_.address.prefix,
                            .concurrent_max = options_.concurrent_lists_max,
                            .pages = {.store = name_,
                                      .patience = options_.patience,
                                      .first_patience = options_.first_patience,
                                      .seed = options_.seed,
                                      .deadline = deadline},
                            .progress = progress},
                           fetch, clock_);
  // No newer keys have come. The store refuses them, and is not gone.
  if (!listing && keys_expired && listing.error().code() == Code::kUnavailable)
    return Error(Code::kPermissionDenied, listing.error().message());
  return listing;
}

void S3Store::Shutdown() {
  if (credentials_) credentials_->Shutdown();
  client_->Shutdown();
}

void S3Store::VisitCounters(const CounterVisitor& visit) const {
  const internal::TransferCounts counts = client_->counts();
  visit(MetricKind::kGauge, "optcache_store_client_requests",
        {{"store", name()}, {"state", "waiting"}}, static_cast<double>(counts.waiting));
  visit(MetricKind::kGauge, "optcache_store_client_requests",
        {{"store", name()}, {"state", "running"}}, static_cast<double>(counts.running));
}

}  // namespace optcache::storage
