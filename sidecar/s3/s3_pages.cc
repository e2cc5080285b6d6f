// Lists keys and writes the XML of S3.
//
// ListKeys asks the sorted keys for the first one from some text on, again and again. Behind a
// common prefix it goes on at the first text above all keys with that prefix. So a page costs as
// many look-ups as it has entries, however many keys lie under a prefix. The last entry of a page
// is where the next page begins.

#include "sidecar/s3/s3_pages.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/percent_encoding.h"
#include "base/utf8.h"

namespace optcache::sidecar {
namespace {

constexpr std::string_view kDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
constexpr std::string_view kNamespace = "http://s3.amazonaws.com/doc/2006-03-01/";
constexpr std::string_view kOwner =
    "<Owner><ID>optcache</ID><DisplayName>optcache</DisplayName></Owner>";
constexpr std::string_view kNoTime = "1970-01-01T00:00:00.000Z";

std::string IsoTime(std::int64_t unix_seconds) {
  const std::time_t time = unix_seconds;
  std::tm utc{};
  if (::gmtime_r(&time, &utc) == nullptr) return std::string(kNoTime);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.000Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string Tag(std::string_view name, std::string_view text) {
  return fmt::format("<{}>{}</{}>", name, EscapeXml(text), name);
}

// The first text that is above all that begin with `prefix`; empty: there is none.
std::string EndOf(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff')
    prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

// The common prefix that the key is rolled up into; empty: none.
std::string RolledUp(std::string_view key, const ListQuery& query) {
  if (query.delimiter.empty() || !key.starts_with(query.prefix)) return "";
  const std::size_t at = key.find(query.delimiter, query.prefix.size());
  return at == std::string_view::npos ? ""
                                      : std::string(key.substr(0, at + query.delimiter.size()));
}

// The first key of the page is not below it; nothing: there is none.
std::optional<std::string> BeginOf(const ListQuery& query) {
  if (query.after < query.prefix) return query.prefix;
  if (query.goes_on && RolledUp(query.after, query) == query.after && !query.after.empty()) {
    std::string end = EndOf(query.after);
    return end.empty() ? std::nullopt : std::optional(std::move(end));
  }
  return query.after.empty() ? std::string() : query.after + '\0';
}

}  // namespace

std::string EscapeXml(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string escaped;
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const char c = text.front();
    if (length != 1) {
      escaped += length == 0 ? kReplacement : text.substr(0, length);
      text.remove_prefix(std::max<std::size_t>(length, 1));
      continue;
    }
    text.remove_prefix(1);
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          escaped += fmt::format("&#x{:X};", static_cast<unsigned>(c));
        } else {
          escaped += c;
        }
    }
  }
  return escaped;
}

Listing ListKeys(const BucketView& bucket, const ListQuery& query) {
  Listing listing;
  BucketView::Walk walk;
  std::optional<std::string> from = BeginOf(query);
  while (from) {
    std::optional<FoundObject> object = bucket.Next(*from, walk);
    if (!object || !object->key.starts_with(query.prefix)) return listing;
    if (listing.objects.size() + listing.common_prefixes.size() >= query.max_keys) {
      listing.truncated = query.max_keys > 0;
      return listing;
    }
    std::string rolled_up = RolledUp(object->key, query);
    if (rolled_up.empty()) {
      listing.last = object->key;
      from = object->key + '\0';
      listing.objects.push_back(*std::move(object));
      continue;
    }
    listing.last = rolled_up;
    std::string end = EndOf(rolled_up);
    from = end.empty() ? std::nullopt : std::optional(std::move(end));
    listing.common_prefixes.push_back(std::move(rolled_up));
  }
  return listing;
}

std::string ListingPage(const S3Request& request, const Listing& listing) {
  const ListQuery& query = request.list;
  const bool second = request.operation == S3Operation::kListObjectsV2;
  const auto key = [&query](std::string_view name, std::string_view text) {
    return Tag(name, query.encodes_keys ? PercentEncodePath(text) : std::string(text));
  };
  std::string page(kDeclaration);
  page += fmt::format("<ListBucketResult xmlns=\"{}\">", kNamespace);
  page += Tag("Name", request.bucket) + key("Prefix", query.prefix);
  if (!query.delimiter.empty()) page += key("Delimiter", query.delimiter);
  page += Tag("MaxKeys", std::to_string(query.max_keys));
  if (query.encodes_keys) page += Tag("EncodingType", "url");
  page += Tag("IsTruncated", listing.truncated ? "true" : "false");
  if (second) {
    page +=
        Tag("KeyCount", std::to_string(listing.objects.size() + listing.common_prefixes.size()));
    if (!query.token.empty()) page += Tag("ContinuationToken", query.token);
    if (!query.start_after.empty()) page += key("StartAfter", query.start_after);
    if (listing.truncated) page += Tag("NextContinuationToken", TokenAfter(listing.last));
  } else {
    page += key("Marker", query.after);
    if (listing.truncated) page += key("NextMarker", listing.last);
  }
  for (const FoundObject& object : listing.objects) {
    page += "<Contents>" + key("Key", object.key) +
            Tag("LastModified", IsoTime(object.modified_s)) + Tag("ETag", object.etag) +
            Tag("Size", std::to_string(object.size)) + Tag("StorageClass", "STANDARD");
    if (query.names_owner) page += kOwner;
    page += "</Contents>";
  }
  for (const std::string& prefix : listing.common_prefixes)
    page += "<CommonPrefixes>" + key("Prefix", prefix) + "</CommonPrefixes>";
  return page + "</ListBucketResult>\n";
}

std::string ErrorPage(const S3Error& error, std::string_view resource,
                      std::string_view request_id) {
  // A parser of XML refuses control characters, and these texts repeat what a client has sent.
  return std::string(kDeclaration) + "<Error>" + Tag("Code", error.code) +
         Tag("Message", Visible(error.message)) + Tag("Resource", Visible(resource)) +
         Tag("RequestId", request_id) + "</Error>\n";
}

std::string BucketsPage(const std::vector<std::string>& names) {
  std::string page(kDeclaration);
  page += fmt::format("<ListAllMyBucketsResult xmlns=\"{}\">", kNamespace);
  page += kOwner;
  page += "<Buckets>";
  for (const std::string& name : names)
    page += "<Bucket>" + Tag("Name", name) + Tag("CreationDate", kNoTime) + "</Bucket>";
  return page + "</Buckets></ListAllMyBucketsResult>\n";
}

std::string PageForPeople(const std::vector<std::string>& names) {
  std::string page =
      "This is the S3 endpoint of an optcache sidecar. It serves the samples of Datasets, and "
      "takes "
      "nothing.\n\nBuckets:\n";
  for (const std::string& name : names)
    page += "  /" + Visible(name) + "\n";
  return page +
         "\nTo list a bucket, add ?list-type=2 to its address. To read an object, add /KEY.\n"
         "To read by a client of S3, set AWS_ENDPOINT_URL_S3 to the address of this page.\n";
}

std::string LocationPage(std::string_view region) {
  return fmt::format("{}<LocationConstraint xmlns=\"{}\">{}</LocationConstraint>\n", kDeclaration,
                     kNamespace, region == "us-east-1" ? "" : EscapeXml(region));
}

std::string VersioningPage() {
  return fmt::format("{}<VersioningConfiguration xmlns=\"{}\"/>\n", kDeclaration, kNamespace);
}

}  // namespace optcache::sidecar
