#include "storage/http_store.h"

#include <algorithm>
#include <charconv>
#include <future>
#include <optional>

#include <fmt/format.h>

#include "dataset/manifest.h"
#include "storage/internal/curl.h"
#include "storage/listing_file.h"

namespace optcache::storage {
namespace {

using internal::HttpRequest;
using internal::HttpResponse;

bool IsWhole(const ReadRequest& request) {
  return request.destination.size() == request.object_size;
}

dataset::Validator ValidatorOf(const HttpResponse& response) {
  return {.modified_ns = response.last_modified_s * 1'000'000'000, .etag = response.etag};
}

// What an answer other than 2xx means.
Status HttpError(int http_status, std::string_view what) {
  const auto error = [&](Code code, std::string_view why) {
    return Status(code, fmt::format("{}: HTTP {}: {}", what, http_status, why));
  };
  switch (http_status) {
    case 401:
      return error(Code::kPermissionDenied, "the server wants a key, or another one");
    case 403:
      return error(Code::kPermissionDenied, "the server does not allow it");
    case 404:
    case 410:
      return error(Code::kNotFound, "no such object");
    case 408:
    case 429:
      return error(Code::kUnavailable, "the server asks to come back later");
    case 412:
    case 416:
      return error(Code::kConflict,
                   "the object changed since the manifest was made. Build the manifest again");
    default:
      return http_status >= 500 ? error(Code::kUnavailable, "the server cannot answer now")
                                : error(Code::kInvalidArgument, "not what a file server answers");
  }
}

// Ok if a complete 2xx answer came.
Status CheckAnswer(const HttpResponse& response, std::string_view what) {
  // The body of an error may be cut off; its status line counts.
  if (response.http_status >= 300) return HttpError(response.http_status, what);
  if (!response.transport.ok()) return Status(response.transport).WithContext(what);
  return OkStatus();
}

struct ContentRange {
  ByteCount first = 0;
  ByteCount last = 0;
  std::optional<ByteCount> total;
};

// "bytes 0-9/100" or "bytes 0-9/*".
std::optional<ContentRange> ParseContentRange(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const auto take_number = [&](ByteCount& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return error == std::errc();
  };
  const auto take = [&](char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
  };
  ContentRange range;
  ByteCount total = 0;
  if (!take_number(range.first) || !take('-') || !take_number(range.last) || !take('/')) {
    return std::nullopt;
  }
  if (text == "*") return range;
  if (!take_number(total) || !text.empty()) return std::nullopt;
  range.total = total;
  return range;
}

// What a whole or ranged 2xx answer says of the object; unset where it does not tell its size.
Result<std::optional<ByteCount>> ObjectSize(const ReadRequest& request,
                                            const HttpResponse& response) {
  if (IsWhole(request)) {
    if (response.http_status == 200) return response.content_length;
    return Error(Code::kInvalidArgument, fmt::format("{}: HTTP {} instead of 200",
                                                     Describe(request), response.http_status));
  }
  if (response.http_status != 206) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{}: the server ignores ranges (HTTP {} instead of 206)",
                             Describe(request), response.http_status));
  }
  const std::optional<ContentRange> range = ParseContentRange(response.content_range);
  if (!range || range->first != request.offset ||
      range->last != request.offset + request.destination.size() - 1) {
    return Error(Code::kDataLoss, fmt::format("{}: the server sent another range, \"{}\"",
                                              Describe(request), response.content_range));
  }
  return range->total;
}

// How a read ended that got `taken` bytes.
Status ReadStatus(const ReadRequest& request, const HttpResponse& response, ByteCount taken) {
  if (response.http_status >= 300 || response.http_status == 0) {
    return CheckAnswer(response, Describe(request));
  }
  ASSIGN_OR_RETURN(const std::optional<ByteCount> size, ObjectSize(request, response));
  // One version has one length: with the listed ETag, another length is a broken answer.
  const bool same_version =
      !request.validator.etag.empty() && response.etag == request.validator.etag;
  if (size && *size != request.object_size && same_version) {
    return {Code::kDataLoss, fmt::format("{}: the answer is for {} bytes, the object has {}",
                                         Describe(request), *size, request.object_size)};
  }
  RETURN_IF_ERROR(CheckUnchanged(
      Describe(request), request.listed(),
      {.size = size.value_or(request.object_size), .validator = ValidatorOf(response)}));
  RETURN_IF_ERROR(CheckAnswer(response, Describe(request)));
  if (taken != request.destination.size()) {
    return {Code::kDataLoss, fmt::format("{}: only {} bytes came", Describe(request), taken)};
  }
  return OkStatus();
}

void AddHeaders(const ReadRequest& request, std::vector<std::string>& headers) {
  const std::string& etag = request.validator.etag;
  // If-Match compares strongly, so a weak ETag would never match; the answer's is compared instead.
  if (!etag.empty() && !etag.starts_with("W/")) headers.push_back("If-Match: " + etag);
  if (!IsWhole(request)) {
    headers.push_back(fmt::format("Range: bytes={}-{}", request.offset,
                                  request.offset + request.destination.size() - 1));
  }
}

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

}  // namespace

std::string PercentEncodePath(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string encoded;
  encoded.reserve(path.size());
  for (const char c : path) {
    if (kPlain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

Result<std::unique_ptr<HttpStore>> HttpStore::Open(HttpStoreOptions options, const Clock& clock) {
  RETURN_IF_ERROR(CheckAddress(options.base_url));
  while (options.base_url.ends_with('/'))
    options.base_url.pop_back();
  return std::unique_ptr<HttpStore>(new HttpStore(std::move(options), clock));
}

HttpStore::HttpStore(HttpStoreOptions options, const Clock& clock)
    : options_(std::move(options)),
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
  AddHeaders(request, http.headers);
  const int expected_status = IsWhole(request) ? 200 : 206;
  // How far the destination is filled; used by the client's thread, and last by the callback.
  auto taken = std::make_shared<ByteCount>(0);
  http.take_body = [expected_status, taken, destination = request.destination](int http_status,
                                                                               ByteSpan piece) {
    if (http_status != expected_status || piece.size() > destination.size() - *taken) return false;
    std::ranges::copy(piece, destination.begin() + static_cast<std::ptrdiff_t>(*taken));
    *taken += piece.size();
    return true;
  };
  return client_->Send(std::move(http), [request = std::move(request), taken,
                                         done = std::move(done)](
                                            const HttpResponse& response) mutable {
    done({.status = ReadStatus(request, response, *taken), .retry_after = response.retry_after});
  });
}

Result<HttpResponse> HttpStore::SendAndWait(HttpRequest request) {
  // The client calls back at about the deadline at the latest, so the wait has an end.
  std::promise<HttpResponse> promise;
  std::future<HttpResponse> future = promise.get_future();
  RETURN_IF_ERROR(client_->Send(
      std::move(request), [&](HttpResponse response) { promise.set_value(std::move(response)); }));
  return future.get();
}

Result<ObjectInfo> HttpStore::Stat(const std::string& object, Deadline deadline) {
  RETURN_IF_ERROR(dataset::CheckObjectPath(object));
  ASSIGN_OR_RETURN(HttpRequest request, RequestFor(object, deadline));
  request.method = HttpRequest::Method::kHead;
  ASSIGN_OR_RETURN(const HttpResponse response, SendAndWait(std::move(request)));
  RETURN_IF_ERROR(CheckAnswer(response, object));
  if (!response.content_length) {
    return Error(Code::kInvalidArgument,
                 object + ": the server does not tell its size (no Content-Length)");
  }
  return ObjectInfo{.size = *response.content_length, .validator = ValidatorOf(response)};
}

Result<ObjectListing> HttpStore::List(Deadline deadline, const ListProgress& progress) {
  std::string text;
  ASSIGN_OR_RETURN(HttpRequest request, RequestFor(options_.listing, deadline));
  request.take_body = [&](int /*http_status*/, ByteSpan piece) {
    text += AsText(piece);
    return text.size() <= options_.listing_bytes_max;
  };
  ASSIGN_OR_RETURN(const HttpResponse response, SendAndWait(std::move(request)));
  const std::string what = fmt::format("listing {}/{}", options_.base_url, options_.listing);
  if (text.size() > options_.listing_bytes_max) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{}: it is longer than the limit of {}: split the dataset", what,
                             FormatBytes(options_.listing_bytes_max)));
  }
  if (const Status answered = CheckAnswer(response, what); !answered.ok()) {
    return Error(answered.code(), answered.message() + "; check the address of the source");
  }
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
  visit(MetricKind::kGauge, "optcache_store_waiting_reads", {{"store", name()}},
        static_cast<double>(counts.waiting));
  visit(MetricKind::kGauge, "optcache_store_running_reads", {{"store", name()}},
        static_cast<double>(counts.running));
}

}  // namespace optcache::storage
