// Judges what of an HTTP answer may be believed, for all stores that speak HTTP.
//
// The idea: bytes go straight to the destination while they come, and the answer is judged at its
// end, so nothing may be used before `done` says ok. The order of the checks: an error of the
// server; the range that came; the object's size; its version (ETag or time); the transport; the
// number of bytes; and last the checksums of the whole object, where the store tells any: only then
// are they made.
//
// A read that broke off may go on where it stopped (Filled) only if the rest is sure to be of the
// same version: the listed ETag is strong, the answer had it, and the server sends ranges. The
// checksums go on with it, in WholeSums.

#include "storage/internal/http_exchange.h"

#include <charconv>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "storage/destination.h"

namespace optcache::storage::internal {
namespace {

constexpr const char* kAcceptRanges = "Accept-Ranges";

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
Status ReadStatus(const ReadRequest& request, const HttpResponse& response,
                  const HttpDialect& dialect, ByteCount taken) {
  if (response.http_status >= 300 || response.http_status == 0) {
    return CheckAnswer(response, Describe(request), dialect);
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
  RETURN_IF_ERROR(CheckAnswer(response, Describe(request), dialect));
  if (taken != request.destination.size()) {
    return {Code::kDataLoss, fmt::format("{}: only {} bytes came", Describe(request), taken)};
  }
  return OkStatus();
}

// Servers that send no ranges would be asked once more in vain.
bool SendsRanges(const HttpResponse& response) {
  const auto told = response.headers.find(kAcceptRanges);
  return response.http_status == 206 ||
         (told != response.headers.end() && told->second.starts_with("bytes"));
}

// ReadOutcome::filled of a read that got `taken` bytes before its connection ended or went silent.
ByteCount Filled(const ReadRequest& request, const HttpResponse& response, ByteCount taken) {
  const std::string& etag = request.validator.etag;
  if (response.transport.ok() || !etag.starts_with('"') || response.etag != etag) return 0;
  if (!SendsRanges(response) || response.http_status >= 300 || taken >= request.destination.size())
    return 0;
  const Result<std::optional<ByteCount>> size = ObjectSize(request, response);
  return size && *size == request.object_size ? taken : 0;
}

}  // namespace

bool IsWhole(const ReadRequest& request) {
  return request.destination.size() == request.object_size;
}

dataset::Validator ValidatorOf(const HttpResponse& response) {
  constexpr std::int64_t kNsInSecond = 1'000'000'000;
  // What is beyond the year 2262 says nothing.
  const std::int64_t modified_s = response.last_modified_s;
  const bool known = modified_s <= std::numeric_limits<std::int64_t>::max() / kNsInSecond;
  return {.modified_ns = known ? modified_s * kNsInSecond : 0,
          .etag = dataset::IsETag(response.etag) ? response.etag : ""};
}

Status HttpError(const HttpResponse& response, std::string_view what) {
  const int http_status = response.http_status;
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
                   fmt::format("the object changed since the manifest was made. {}", kIndexAgain));
    case 501:
    case 505:
      return error(Code::kInvalidArgument, "the server does not know this kind of request");
    default:
      return http_status >= 500 ? error(Code::kUnavailable, "the server cannot answer now")
                                : error(Code::kInvalidArgument, "not what a file server answers");
  }
}

Status CheckAnswer(const HttpResponse& response, std::string_view what,
                   const HttpDialect& dialect) {
  // The body of an error may be cut off; its status line counts. A redirection that was not
  // followed is one, too.
  if (response.http_status >= 300) return dialect.error(response, what);
  if (!response.transport.ok()) return Status(response.transport).WithContext(what);
  return OkStatus();
}

std::vector<std::string> ReadHeaders(const ReadRequest& request) {
  std::vector<std::string> headers;
  const std::string& etag = request.validator.etag;
  // If-Match compares strongly, so a weak ETag would never match; the answer's is compared instead.
  if (!etag.empty() && !etag.starts_with("W/")) headers.push_back("If-Match: " + etag);
  if (!IsWhole(request)) {
    headers.push_back(fmt::format("Range: bytes={}-{}", request.offset,
                                  request.offset + request.destination.size() - 1));
  }
  if (request.fresh) headers.push_back("Cache-Control: no-cache");
  return headers;
}

Status SendRead(HttpClient& client, HttpRequest http, ReadRequest read, const HttpDialect& dialect,
                ReadCallback done) {
  const int expected_status = IsWhole(read) ? 200 : 206;
  // Used by the client's thread, and last by the callback.
  struct Taken {
    DestinationWriter writer;
    std::optional<WholeSums> sums;
  };
  auto taken = std::make_shared<Taken>(DestinationWriter(read.destination), std::move(read.sums));
  http.silence_max = read.silence_max;
  http.wanted_headers.emplace_back(kAcceptRanges);
  // What the answer to a range tells may be of that range.
  if (dialect.sums_of_whole != nullptr && IsWhole(read)) {
    http.take_head = [taken, sums_of_whole = dialect.sums_of_whole](const HttpResponse& head) {
      taken->sums = sums_of_whole(head);
    };
  }
  http.take_body = [expected_status, taken](int http_status, ByteSpan piece) {
    if (http_status != expected_status || !taken->writer.Write(piece)) return false;
    if (taken->sums) taken->sums->Add(piece);
    return true;
  };
  if (read.destination.stop() != nullptr) {
    http.unwanted = [stop = read.destination.stop()] { return stop->stopped(); };
  }
  return client.Send(
      std::move(http), [read = std::move(read), taken, dialect,
                        done = std::move(done)](const HttpResponse& response) mutable {
        const ByteCount received = taken->writer.written();
        ReadOutcome outcome = {.status = ReadStatus(read, response, dialect, received),
                               .retry_after = response.retry_after,
                               .received = received,
                               .filled = Filled(read, response, received)};
        if (!outcome.status.ok()) {
          outcome.keys_expired = dialect.keys_expired != nullptr && dialect.keys_expired(response);
        } else if (taken->sums) {
          outcome.status = taken->sums->Compare().WithContext(Describe(read));
          outcome.sums_differ = !outcome.status.ok();
        }
        if (outcome.filled > 0) outcome.sums = std::move(taken->sums);
        done(std::move(outcome));
      });
}

Result<HttpResponse> SendAndWait(HttpClient& client, HttpRequest request) {
  // Shared: the client's thread may still be within set_value when this one goes on.
  const auto ended = std::make_shared<std::promise<HttpResponse>>();
  std::future<HttpResponse> future = ended->get_future();
  RETURN_IF_ERROR(client.Send(std::move(request), [ended](HttpResponse response) {
    ended->set_value(std::move(response));
  }));
  return future.get();
}

Result<ObjectInfo> InfoOf(const HttpResponse& response, const std::string& object,
                          const HttpDialect& dialect) {
  RETURN_IF_ERROR(CheckAnswer(response, object, dialect));
  if (!response.content_length) {
    return Error(Code::kInvalidArgument,
                 object + ": the server does not tell its size (no Content-Length)");
  }
  return ObjectInfo{.size = *response.content_length, .validator = ValidatorOf(response)};
}

}  // namespace optcache::storage::internal
