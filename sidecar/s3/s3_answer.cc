// Chooses the answer to a request that has been understood.
//
// The bucket comes first, then the key, the preconditions (RFC 9110), and the range. An answer has
// either a body, an error, a part of an object that is still to be read, or the length that a GET
// would have.

#include "sidecar/s3/s3_answer.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "sidecar/s3/http_date.h"
#include "sidecar/s3/preconditions.h"
#include "sidecar/s3/s3_pages.h"

namespace optcache::sidecar {
namespace {

S3Answer Page(std::string xml) {
  return {.headers = {{"Content-Type", "application/xml"}},
          .body = std::move(xml),
          .error = {},
          .part = {},
          .length_of_head = {}};
}

bool IsSigned(const S3Request& request, const net::HttpHeaders& headers) {
  return request.presigned || net::FindHeader(headers, "Authorization");
}

// Libraries of S3 sign, or send headers of their own; browsers and curl do neither.
bool IsOfPeople(const S3Request& request, const net::HttpHeaders& headers) {
  return !IsSigned(request, headers) && std::ranges::none_of(headers, [](const auto& header) {
    const std::string_view name = header.first;
    return net::SameWithoutCase(name.substr(0, 6), "x-amz-") ||
           net::SameWithoutCase(name.substr(0, 8), "amz-sdk-");
  });
}

S3Answer BucketsAnswer(const S3Request& request, const net::HttpHeaders& headers,
                       const KeySpace& keys) {
  if (!IsOfPeople(request, headers)) return Page(BucketsPage(keys.names()));
  S3Answer answer = Page(PageForPeople(keys.names()));
  answer.headers = {{"Content-Type", "text/plain; charset=utf-8"}};
  return answer;
}

S3Error ConditionError(std::string_view header) {
  return {.status = 412,
          .code = "PreconditionFailed",
          .message = fmt::format("The object is another version than {} names", header)};
}

RequestedRange RangeOf(const S3Request& request, const net::HttpHeaders& headers,
                       const FoundObject& object, const ObjectVersion& version) {
  if (request.first_part && object.size > 0)
    return {.kind = RangeKind::kPart, .bytes = {.first = 0, .length = object.size}};
  return ParseRange(
      RangeCounts(headers, version) ? net::FindHeader(headers, "Range") : std::nullopt,
      object.size);
}

void AddDescription(const S3Request& request, S3Answer& answer) {
  if (std::ranges::find(request.overrides, "Content-Type", &net::HttpHeaders::value_type::first) ==
      request.overrides.end())
    answer.headers.emplace_back("Content-Type", "binary/octet-stream");
  if (request.overrides.empty()) return;
  std::ranges::copy(request.overrides, std::back_inserter(answer.headers));
  // A sample that its requester calls a page runs no script, and is nothing else by its looks.
  answer.headers.emplace_back("Content-Security-Policy", "sandbox");
  answer.headers.emplace_back("X-Content-Type-Options", "nosniff");
}

S3Answer ObjectAnswer(const S3Request& request, const net::HttpHeaders& headers,
                      const FoundObject& object) {
  if (!request.overrides.empty() && !IsSigned(request, headers)) {
    return AnswerWithError(
        {.status = 400,
         .code = "InvalidRequest",
         .message = "Headers of an answer are overridden only for signed requests"});
  }
  const ObjectVersion version{.etag = object.etag, .modified_s = object.modified_s};
  const Precondition precondition = CheckPreconditions(headers, version);
  if (precondition == Precondition::kIfMatchFails)
    return AnswerWithError(ConditionError("If-Match"));
  if (precondition == Precondition::kIfUnmodifiedSinceFails)
    return AnswerWithError(ConditionError("If-Unmodified-Since"));
  S3Answer answer{.headers = {{"ETag", object.etag},
                              {"Last-Modified", HttpDate(object.modified_s)},
                              {"Accept-Ranges", "bytes"}},
                  .body = {},
                  .error = {},
                  .part = {},
                  .length_of_head = {}};
  if (precondition == Precondition::kNotModified) {
    answer.status = 304;
    return answer;
  }
  AddDescription(request, answer);
  const RequestedRange range = RangeOf(request, headers, object, version);
  if (range.kind == RangeKind::kUnsatisfiable) {
    S3Answer error =
        AnswerWithError({.status = 416,
                         .code = "InvalidRange",
                         .message = fmt::format("The object has {} bytes", object.size)});
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

S3Answer BucketAnswer(const S3Request& request, const BucketView& bucket) {
  switch (request.operation) {
    case S3Operation::kHeadBucket:
      return {.headers = {{"x-amz-bucket-region",
                           bucket.region().empty() ? "us-east-1" : bucket.region()}},
              .body = {},
              .error = {},
              .part = {},
              .length_of_head = {}};
    case S3Operation::kBucketLocation:
      return Page(LocationPage(bucket.region()));
    case S3Operation::kBucketVersioning:
      return Page(VersioningPage());
    default:
      break;
  }
  if (!bucket.HasObjects()) return AnswerWithError(NotAnObject("What lies in this bucket"));
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

S3Error ErrorOfServer(int status, std::string why) {
  const auto code_of = [status]() -> std::string_view {
    switch (status) {
      case 400:
        return "InvalidRequest";
      case 408:
        return "RequestTimeout";
      case 413:
        return "EntityTooLarge";
      case 431:
        return "RequestHeaderSectionTooLarge";
      case 503:
        return "SlowDown";
      default:
        return "InternalError";
    }
  };
  return {.status = status, .code = std::string(code_of()), .message = std::move(why)};
}

S3Answer AnswerWithError(S3Error error) {
  S3Answer answer = Page("");
  answer.status = error.status;
  if (error.status == 405) answer.headers.emplace_back("Allow", "GET, HEAD");
  answer.error = std::move(error);
  return answer;
}

S3Answer AnswerS3(const S3Request& request, const net::HttpHeaders& headers, const KeySpace& keys) {
  if (request.operation == S3Operation::kListBuckets) return BucketsAnswer(request, headers, keys);
  const BucketView* const bucket = keys.Find(request.bucket);
  if (bucket == nullptr) {
    return AnswerWithError({.status = 404,
                            .code = "NoSuchBucket",
                            .message = "No Dataset of this sidecar lies in that bucket: only what "
                                       "Datasets name is served here"});
  }
  if (request.key.empty()) return BucketAnswer(request, *bucket);
  const auto object = bucket->Find(request.key);
  if (object) return ObjectAnswer(request, headers, *object);
  if (bucket->IsArchive(request.key)) return AnswerWithError(NotAnObject(request.key));
  return AnswerWithError({.status = 404,
                          .code = "NoSuchKey",
                          .message = "No Dataset of this sidecar has that object as a sample"});
}

}  // namespace optcache::sidecar
