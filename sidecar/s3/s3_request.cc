// Takes the method and the address of a request apart, and refuses what the endpoint does not do.
//
// A field of the query that asks for another answer than the endpoint has is refused: of a bucket
// every field that is not known, of an object those that name a part of S3 that is missing here. A
// client thus never takes an answer for another. Fields of a signature are left out of this, and
// are not checked. A header that the query overrides is limited to printable ASCII, since it goes
// into the answer's head.

#include "sidecar/s3/s3_request.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/percent_encoding.h"
#include "base/whole_number.h"

namespace optcache::sidecar {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr auto kOperationNames = std::to_array<std::string_view>(
    {"list_buckets", "head_bucket", "bucket_location", "bucket_versioning", "list_objects",
     "list_objects_v2", "head_object", "get_object"});
static_assert(kOperationNames.size() == kS3Operations);

constexpr std::uint64_t kPartsMax = 10'000;  // of an object that is uploaded in parts

constexpr std::string_view kNoWrites =
    "This endpoint serves the samples of Datasets to their training and takes nothing. Give the "
    "client that saves checkpoints an endpoint of its own, for example "
    "boto3.client('s3', endpoint_url='https://s3.us-east-1.amazonaws.com'), instead of "
    "AWS_ENDPOINT_URL_S3";

// Parts of objects that are asked for by a word in the query, and that no object has here.
constexpr auto kObjectParts =
    std::to_array<std::string_view>({"acl", "attributes", "legal-hold", "restore", "retention",
                                     "select", "tagging", "torrent", "uploadId", "uploads"});
// Of an object's answer: the word in the query, and the header that it overrides.
constexpr auto kOverrides = std::to_array<std::pair<std::string_view, std::string_view>>(
    {{"response-cache-control", "Cache-Control"},
     {"response-content-disposition", "Content-Disposition"},
     {"response-content-encoding", "Content-Encoding"},
     {"response-content-language", "Content-Language"},
     {"response-content-type", "Content-Type"},
     {"response-expires", "Expires"}});
constexpr auto kListFields = std::to_array<std::string_view>(
    {"list-type", "prefix", "delimiter", "max-keys", "marker", "continuation-token", "start-after",
     "encoding-type", "fetch-owner", "optional-object-attributes", "x-id"});

std::unexpected<S3Error> Refuse(int status, std::string_view code, std::string message) {
  return std::unexpected(
      S3Error{.status = status, .code = std::string(code), .message = std::move(message)});
}

std::expected<std::string, S3Error> Decode(std::string_view text, bool plus_is_blank) {
  std::string plain(text);
  if (plus_is_blank) std::ranges::replace(plain, '+', ' ');
  Result<std::string> decoded = PercentDecode(plain);
  if (!decoded) return Refuse(400, "InvalidURI", "The address is not percent-encoded as it should");
  return *std::move(decoded);
}

std::expected<Fields, S3Error> FieldsOf(std::string_view query) {
  Fields fields;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view field = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (field.empty()) continue;
    if (fields.size() == kQueryFieldsMax)
      return Refuse(400, "InvalidArgument", "The query has too many fields");
    const std::size_t equals = std::min(field.find('='), field.size());
    auto name = Decode(field.substr(0, equals), true);
    auto value = Decode(field.substr(std::min(equals + 1, field.size())), true);
    if (!name) return std::unexpected(std::move(name).error());
    if (!value) return std::unexpected(std::move(value).error());
    fields.emplace_back(*std::move(name), *std::move(value));
  }
  return fields;
}

const std::string* FieldIn(const Fields& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Fields::value_type::first);
  return found == fields.end() ? nullptr : &found->second;
}

// Of presigned addresses: of version 4 all that begins with X-Amz-, of version 2 these.
bool IsOfSignature(std::string_view name) {
  constexpr std::string_view kVersion4 = "X-Amz-";
  return net::SameWithoutCase(name.substr(0, kVersion4.size()), kVersion4) ||
         name == "AWSAccessKeyId" || name == "Signature" || name == "Expires";
}

std::string TextIn(const Fields& fields, std::string_view name) {
  const std::string* const found = FieldIn(fields, name);
  return found == nullptr ? "" : *found;
}

// Base64 by the letters that stay as they are in an address (RFC 4648, section 5).
std::string SwapForAddress(std::string base64, bool to_address) {
  for (char& c : base64) {
    if (c == (to_address ? '+' : '-')) {
      c = to_address ? '-' : '+';
    } else if (c == (to_address ? '/' : '_')) {
      c = to_address ? '_' : '/';
    }
  }
  return base64;
}

std::expected<net::HttpHeaders, S3Error> OverridesIn(const Fields& fields) {
  net::HttpHeaders overrides;
  for (const auto& [word, header] : kOverrides) {
    const std::string* const value = FieldIn(fields, word);
    if (value == nullptr) continue;
    // It goes into the head of an answer as it is, which a line break would end.
    if (!std::ranges::all_of(*value, [](char c) { return c >= ' ' && c <= '~'; })) {
      return Refuse(400, "InvalidArgument",
                    fmt::format("{} has a character that is not printable ASCII", word));
    }
    overrides.emplace_back(header, *value);
  }
  return overrides;
}

std::expected<ListQuery, S3Error> ListQueryOf(const Fields& fields, S3Operation operation) {
  ListQuery list{.prefix = TextIn(fields, "prefix"), .delimiter = TextIn(fields, "delimiter")};
  if (const std::string* const encoding = FieldIn(fields, "encoding-type"); encoding != nullptr) {
    if (*encoding != "url")
      return Refuse(400, "InvalidArgument", "encoding-type is url, or is left out");
    list.encodes_keys = true;
  }
  list.names_owner =
      operation == S3Operation::kListObjects || TextIn(fields, "fetch-owner") == "true";
  if (const std::string* const most = FieldIn(fields, "max-keys"); most != nullptr) {
    const auto number = ParseWholeNumber<std::size_t>(*most);
    if (!number) return Refuse(400, "InvalidArgument", "max-keys is not a whole number from 0 on");
    list.max_keys = std::min(*number, kListMax);
  }
  if (operation == S3Operation::kListObjects) {
    list.after = TextIn(fields, "marker");
    list.goes_on = true;
    return list;
  }
  list.start_after = TextIn(fields, "start-after");
  list.after = list.start_after;
  if (const std::string* const token = FieldIn(fields, "continuation-token"); token != nullptr) {
    Result<std::string> after = DecodeBase64(SwapForAddress(*token, false));
    if (!after)
      return Refuse(400, "InvalidArgument", "The continuation token is none of this endpoint");
    list.token = *token;
    list.after = *std::move(after);
    list.goes_on = true;
  }
  return list;
}

std::expected<S3Request, S3Error> BucketRequest(std::string_view method, std::string bucket,
                                                const Fields& fields) {
  S3Request request{.operation = S3Operation::kHeadBucket, .bucket = std::move(bucket)};
  if (method == "HEAD") return request;
  if (FieldIn(fields, "location") != nullptr) {
    request.operation = S3Operation::kBucketLocation;
    return request;
  }
  if (FieldIn(fields, "versioning") != nullptr) {
    request.operation = S3Operation::kBucketVersioning;
    return request;
  }
  for (const auto& [name, value] : fields) {
    if (!IsOfSignature(name) && std::ranges::find(kListFields, name) == kListFields.end()) {
      return Refuse(501, "NotImplemented",
                    fmt::format("This endpoint does not know '{}' of a bucket", name));
    }
  }
  request.operation =
      TextIn(fields, "list-type") == "2" ? S3Operation::kListObjectsV2 : S3Operation::kListObjects;
  auto list = ListQueryOf(fields, request.operation);
  if (!list) return std::unexpected(std::move(list).error());
  request.list = *std::move(list);
  return request;
}

std::expected<S3Request, S3Error> ObjectRequest(std::string_view method, std::string bucket,
                                                std::string key, const Fields& fields) {
  if (key.size() > kKeyBytesMax)
    return Refuse(400, "KeyTooLongError", "A key has at most 4,096 bytes");
  for (const std::string_view part : kObjectParts) {
    if (FieldIn(fields, part) != nullptr) {
      return Refuse(501, "NotImplemented",
                    fmt::format("This endpoint does not know '{}' of an object", part));
    }
  }
  if (const std::string version = TextIn(fields, "versionId");
      !version.empty() && version != "null") {
    return Refuse(404, "NoSuchVersion", "Objects have the one version that was indexed");
  }
  S3Request request{
      .operation = method == "HEAD" ? S3Operation::kHeadObject : S3Operation::kGetObject,
      .bucket = std::move(bucket),
      .key = std::move(key)};
  if (const std::string* const part = FieldIn(fields, "partNumber"); part != nullptr) {
    const auto number = ParseWholeNumber(*part, kPartsMax);
    if (!number || *number < 1)
      return Refuse(400, "InvalidArgument", "partNumber is a whole number from 1 to 10,000");
    if (*number > 1) return Refuse(416, "InvalidPartNumber", "Objects have one part here");
    request.first_part = true;
  }
  auto overrides = OverridesIn(fields);
  if (!overrides) return std::unexpected(std::move(overrides).error());
  request.overrides = *std::move(overrides);
  return request;
}

struct BucketAndKey {
  std::string bucket;
  std::string key;
};

// `path` has no slash at its front. With a bucket of the host's, all of it is the key.
std::expected<BucketAndKey, S3Error> NameIn(std::string_view path, std::string host_bucket) {
  BucketAndKey named{.bucket = std::move(host_bucket)};
  if (named.bucket.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    auto bucket = Decode(path.substr(0, slash), false);
    if (!bucket) return std::unexpected(std::move(bucket).error());
    named.bucket = *std::move(bucket);
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  auto key = Decode(path, false);
  if (!key) return std::unexpected(std::move(key).error());
  named.key = *std::move(key);
  return named;
}

}  // namespace

std::string_view S3OperationName(S3Operation operation) {
  return kOperationNames.at(static_cast<std::size_t>(operation));
}

std::expected<S3Request, S3Error> ParseS3Request(std::string_view method, std::string_view target,
                                                 std::string host_bucket) {
  if (method == "PUT" || method == "POST" || method == "DELETE" || method == "PATCH")
    return Refuse(403, "AccessDenied", std::string(kNoWrites));
  if (method != "GET" && method != "HEAD")
    return Refuse(405, "MethodNotAllowed", "This endpoint answers GET and HEAD alone");
  if (!target.starts_with('/'))
    return Refuse(400, "InvalidURI", "The address does not begin with a slash");
  const std::size_t question = std::min(target.find('?'), target.size());
  auto fields = FieldsOf(target.substr(std::min(question + 1, target.size())));
  if (!fields) return std::unexpected(std::move(fields).error());
  auto named = NameIn(target.substr(1, question - 1), std::move(host_bucket));
  if (!named) return std::unexpected(std::move(named).error());
  auto& [bucket, key] = *named;
  std::expected<S3Request, S3Error> request;
  if (bucket.empty()) {
    if (!key.empty()) return Refuse(400, "InvalidBucketName", "The bucket has no name");
  } else if (key.empty()) {
    request = BucketRequest(method, std::move(bucket), *fields);
  } else {
    request = ObjectRequest(method, std::move(bucket), std::move(key), *fields);
  }
  if (request) {
    request->presigned =
        std::ranges::any_of(*fields, [](const auto& field) { return IsOfSignature(field.first); });
  }
  return request;
}

std::string TokenAfter(std::string_view key) {
  return SwapForAddress(EncodeBase64(key), true);
}

}  // namespace optcache::sidecar
