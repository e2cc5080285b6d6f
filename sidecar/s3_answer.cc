#include "sidecar/s3_answer.h"

#include <array>
#include <ctime>

#include <fmt/format.h>

#include "sidecar/s3_pages.h"

namespace optcache::sidecar {
namespace {

// "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, section 5.6.7).
std::string HttpDate(std::int64_t unix_seconds) {
  constexpr auto kDays =
      std::to_array<std::string_view>({"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"});
  constexpr auto kMonths = std::to_array<std::string_view>(
      {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"});
  const std::time_t time = unix_seconds;
  std::tm utc{};
  if (::gmtime_r(&time, &utc) == nullptr) return "Thu, 01 Jan 1970 00:00:00 GMT";
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT",
                     kDays.at(static_cast<std::size_t>(utc.tm_wday)), utc.tm_mday,
                     kMonths.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900,
                     utc.tm_hour, utc.tm_min, utc.tm_sec);
}

S3Answer Page(std::string xml) {
  return {.headers = {{"Content-Type", "application/xml"}},
          .body = std::move(xml),
          .part = {},
          .length_of_head = {}};
}

// Does one of the ETags that the header lists match? Weak ones match as strong ones do: there is
// one version.
bool Lists(std::string_view header, std::string_view etag) {
  while (!header.empty()) {
    const std::size_t comma = std::min(header.find(','), header.size());
    std::string_view one = header.substr(0, comma);
    header.remove_prefix(std::min(comma + 1, header.size()));
    while (one.starts_with(' '))
      one.remove_prefix(1);
    while (one.ends_with(' '))
      one.remove_suffix(1);
    if (one.starts_with("W/")) one.remove_prefix(2);
    const bool unquoted = one.size() + 2 == etag.size() && etag.substr(1, one.size()) == one;
    if (one == "*" || one == etag || unquoted) return true;
  }
  return false;
}

S3Answer ObjectAnswer(const S3Request& request, const net::HttpHeaders& headers,
                      const FoundObject& object, std::string_view resource) {
  const auto if_match = net::FindHeader(headers, "If-Match");
  if (if_match && !Lists(*if_match, object.etag)) {
    return AnswerWithError({.status = 412,
                            .code = "PreconditionFailed",
                            .message = "The object has another ETag than If-Match names"},
                           resource);
  }
  S3Answer answer{.headers = {{"ETag", object.etag},
                              {"Last-Modified", HttpDate(object.modified_s)},
                              {"Accept-Ranges", "bytes"}},
                  .body = {},
                  .part = {},
                  .length_of_head = {}};
  if (const auto if_none = net::FindHeader(headers, "If-None-Match");
      if_none && Lists(*if_none, object.etag)) {
    answer.status = 304;
    return answer;
  }
  answer.headers.emplace_back("Content-Type", "binary/octet-stream");
  const auto if_range = net::FindHeader(headers, "If-Range");
  const bool ranges_count = !if_range || *if_range == object.etag;
  const RequestedRange range =
      ParseRange(ranges_count ? net::FindHeader(headers, "Range") : std::nullopt, object.size);
  if (range.kind == RangeKind::kUnsatisfiable) {
    S3Answer error =
        AnswerWithError({.status = 416,
                         .code = "InvalidRange",
                         .message = fmt::format("The object has {} bytes", object.size)},
                        resource);
    error.headers.emplace_back("Content-Range", fmt::format("bytes */{}", object.size));
    return error;
  }
  if (range.kind == RangeKind::kPart) {
    answer.status = 206;
    answer.headers.emplace_back(
        "Content-Range", fmt::format("bytes {}-{}/{}", range.bytes.first,
                                     range.bytes.first + range.bytes.length - 1, object.size));
  }
  if (request.operation == S3Operation::kHeadObject) {
    answer.length_of_head = range.bytes.length;
  } else if (range.bytes.length > 0) {
    answer.part = {
        .dataset = object.dataset, .id = object.id, .bytes = range.bytes, .size = object.size};
  }
  return answer;
}

S3Error NotAnObject(std::string_view name) {
  return {
      .status = 501,
      .code = "NotImplemented",
      .message = fmt::format("{} has samples of a Dataset as its parts: the object itself is not "
                             "kept. A Dataset of format Files over the objects serves them "
                             "whole",
                             name)};
}

S3Answer BucketAnswer(const S3Request& request, const BucketView& bucket,
                      std::string_view resource) {
  switch (request.operation) {
    case S3Operation::kHeadBucket:
      return {.headers = {{"x-amz-bucket-region",
                           bucket.region().empty() ? "us-east-1" : bucket.region()}},
              .body = {},
              .part = {},
              .length_of_head = {}};
    case S3Operation::kBucketLocation:
      return Page(LocationPage(bucket.region()));
    case S3Operation::kBucketVersioning:
      return Page(VersioningPage());
    default:
      break;
  }
  if (!bucket.HasObjects())
    return AnswerWithError(NotAnObject("What lies in this bucket"), resource);
  return Page(ListingPage(request, ListKeys(bucket, request.list)));
}

}  // namespace

S3Error ErrorOfRead(const Status& status) {
  const auto as = [&status](int http, std::string code) {
    return S3Error{.status = http, .code = std::move(code), .message = status.message()};
  };
  switch (status.code()) {
    case Code::kNotFound:
      return as(404, "NoSuchKey");
    case Code::kConflict:
      return as(412, "PreconditionFailed");
    case Code::kPermissionDenied:
      return as(403, "AccessDenied");
    case Code::kInvalidArgument:
      return as(400, "InvalidRequest");
    case Code::kUnavailable:
    case Code::kResourceExhausted:
    case Code::kDeadlineExceeded:
      return as(503, "SlowDown");
    default:
      return as(500, "InternalError");
  }
}

S3Answer AnswerWithError(const S3Error& error, std::string_view resource) {
  S3Answer answer = Page(ErrorPage(error, resource));
  answer.status = error.status;
  return answer;
}

S3Answer AnswerS3(const S3Request& request, const net::HttpHeaders& headers, const KeySpace& keys) {
  if (request.operation == S3Operation::kListBuckets) return Page(BucketsPage(keys.names()));
  const std::string resource =
      "/" + request.bucket + (request.key.empty() ? "" : "/" + request.key);
  const BucketView* const bucket = keys.Find(request.bucket);
  if (bucket == nullptr) {
    return AnswerWithError({.status = 404,
                            .code = "NoSuchBucket",
                            .message = "No Dataset of this sidecar lies in that bucket: only what "
                                       "Datasets name is served here"},
                           resource);
  }
  if (request.key.empty()) return BucketAnswer(request, *bucket, resource);
  const auto object = bucket->Find(request.key);
  if (object) return ObjectAnswer(request, headers, *object, resource);
  if (bucket->IsArchive(request.key)) return AnswerWithError(NotAnObject(request.key), resource);
  return AnswerWithError({.status = 404,
                          .code = "NoSuchKey",
                          .message = "No Dataset of this sidecar has that object as a sample"},
                         resource);
}

}  // namespace optcache::sidecar
