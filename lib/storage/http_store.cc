// Reads objects of a web server, and lists them in one of two ways.
//
// The idea: a store stays dumb. A read is a GET with If-Match and Range, whose answer
// internal/http_exchange.h judges; retries, hedges and limits are layers above. A listing is a text
// at the address, or the server's own pages of folders, which internal/autoindex_walk.h follows.
// Each request takes the keys of now from their folder, so keys may rotate.
//
// Invariant: an address has no user, password or query in it, so it may stand in any message.

#include "storage/http_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/percent_encoding.h"
#include "dataset/manifest.h"
#include "storage/autoindex.h"
#include "storage/internal/autoindex_walk.h"
#include "storage/internal/curl.h"
#include "storage/internal/http_exchange.h"
#include "storage/listing_file.h"

namespace optcache::storage {
namespace {

using internal::HttpRequest;
using internal::HttpResponse;

constexpr unsigned kFoldersAtATimeMax = 16;

Status CheckAddress(std::string_view url) {
  const auto bad = [&](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("address {}", why));
  };
  const size_t scheme_end = url.find("://");
  const std::string_view scheme = url.substr(0, scheme_end);
  if (scheme_end == std::string_view::npos || (scheme != "http" && scheme != "https")) {
    return bad(fmt::format("\"{}\" does not begin with http:// or https://", url));
  }
  const std::string_view rest = url.substr(scheme_end + 3);
  const std::string_view host = rest.substr(0, rest.find('/'));
  // Without repeating the address: it holds a password.
  if (host.find('@') != std::string_view::npos) return bad("has a user or password in it");
  if (host.empty()) return bad(fmt::format("\"{}\" has no host", url));
  if (url.find_first_of("?# \t\r\n") != std::string_view::npos) {
    return bad(fmt::format("\"{}\" has a query, a fragment or a blank in it", url));
  }
  return OkStatus();
}

constexpr std::string_view kWithoutList =
    ". If it is right, put a list of its samples there, a path a line, or give listing: autoindex "
    "where the server shows its folders";

}  // namespace

Result<std::unique_ptr<HttpStore>> HttpStore::Open(HttpStoreOptions options, const Clock& clock) {
  RETURN_IF_ERROR(CheckAddress(options.base_url));
  while (options.base_url.ends_with('/'))
    options.base_url.pop_back();
  return std::unique_ptr<HttpStore>(new HttpStore(std::move(options), clock));
}

HttpStore::HttpStore(HttpStoreOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      keys_(options_.keys_folder, clock),
      client_(std::make_unique<internal::HttpClient>(
          internal::HttpClientOptions{.concurrent_max = options_.concurrent_reads_max,
                                      .waiting_max = options_.waiting_reads_max,
                                      .connect_timeout = options_.connect_timeout},
          clock)) {}

HttpStore::~HttpStore() {
  Shutdown();
}

std::string HttpStore::UrlOf(std::string_view object) const {
  return options_.base_url + "/" + PercentEncodePath(object);
}

// A GET with the keys of now.
Result<HttpRequest> HttpStore::RequestFor(std::string_view object, Deadline deadline) {
  ASSIGN_OR_RETURN(const HttpKeys keys, keys_.keys());
  HttpRequest request = {.url = UrlOf(object),
                         .ca_file = keys.ca_file.empty() ? options_.ca_file : keys.ca_file,
                         .deadline = deadline};
  if (!keys.authorization.empty())
    request.headers.push_back("Authorization: " + keys.authorization);
  return request;
}

Status HttpStore::Read(ReadRequest request, ReadCallback done) {
  RETURN_IF_ERROR(CheckReadRequest(request));
  ASSIGN_OR_RETURN(HttpRequest http, RequestFor(request.object, request.deadline));
  std::ranges::move(internal::ReadHeaders(request), std::back_inserter(http.headers));
  return internal::SendRead(*client_, std::move(http), std::move(request), {}, std::move(done));
}

Result<ObjectInfo> HttpStore::Stat(const std::string& object, Deadline deadline) {
  RETURN_IF_ERROR(dataset::CheckObjectPath(object));
  ASSIGN_OR_RETURN(HttpRequest request, RequestFor(object, deadline));
  request.method = HttpRequest::Method::kHead;
  ASSIGN_OR_RETURN(const HttpResponse response,
                   internal::SendAndWait(*client_, std::move(request)));
  return internal::InfoOf(response, object);
}

// A listing, or the page of a folder.
Result<std::string> HttpStore::FetchText(const std::string& object, ByteCount bytes_max,
                                         Deadline deadline) {
  std::string text;
  ASSIGN_OR_RETURN(HttpRequest request, RequestFor(object, deadline));
  request.take_body = [&](int /*http_status*/, ByteSpan piece) {
    text += AsText(piece);
    return text.size() <= bytes_max;
  };
  request.silence_max = kSilenceMax;
  ASSIGN_OR_RETURN(const HttpResponse response,
                   internal::SendAndWait(*client_, std::move(request)));
  const std::string what = fmt::format("listing {}/{}", options_.base_url, object);
  if (text.size() > bytes_max) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{}: it is longer than the limit of {}: split the dataset", what,
                             FormatBytes(bytes_max)));
  }
  if (const Status answered = internal::CheckAnswer(response, what); !answered.ok()) {
    const bool no_list = answered.code() == Code::kNotFound && object == options_.listing;
    return Error(answered.code(), fmt::format("{}; check the address of the source{}",
                                              answered.message(), no_list ? kWithoutList : ""));
  }
  return text;
}

Result<ObjectListing> HttpStore::ListFolders(Deadline deadline, const ListProgress& progress) {
  const size_t host = options_.base_url.find("://") + 3;
  const size_t path = options_.base_url.find('/', host);
  Result<ObjectListing> listing = internal::WalkAutoindex(
      {.base_path = (path == std::string::npos ? "" : options_.base_url.substr(path)) + "/",
       .concurrent_max = std::min(options_.concurrent_reads_max, kFoldersAtATimeMax),
       .pages = {.store = name(),
                 .patience = options_.patience,
                 .first_patience = options_.first_patience,
                 .seed = options_.seed,
                 .deadline = deadline},
       .progress = progress},
      [&](const std::string& folder) {
        return FetchText(folder, kAutoindexPageBytesMax, deadline);
      },
      clock_);
  if (!listing) return Error(std::move(listing).error().WithContext(name()));
  return listing;
}

Result<ObjectListing> HttpStore::List(Deadline deadline, const ListProgress& progress) {
  if (options_.listing == kAutoindexListing) return ListFolders(deadline, progress);
  ASSIGN_OR_RETURN(const std::string text,
                   FetchText(options_.listing, options_.listing_bytes_max, deadline));
  const std::string what = fmt::format("listing {}/{}", options_.base_url, options_.listing);
  Result<ObjectListing> listing = ParseListing(text, options_.listing);
  if (!listing) return Error(std::move(listing).error().WithContext(what));
  if (progress) progress(listing->objects.size());
  return listing;
}

void HttpStore::Shutdown() {
  client_->Shutdown();
}

void HttpStore::VisitCounters(const CounterVisitor& visit) const {
  const internal::TransferCounts counts = client_->counts();
  visit(MetricKind::kGauge, "optcache_store_client_requests",
        {{"store", name()}, {"state", "waiting"}}, static_cast<double>(counts.waiting));
  visit(MetricKind::kGauge, "optcache_store_client_requests",
        {{"store", name()}, {"state", "running"}}, static_cast<double>(counts.running));
}

}  // namespace optcache::storage
