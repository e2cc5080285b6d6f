// Reads a bucket's address, and fills what it leaves out from AWS's variables.
//
// The idea: the order is given option, variable, what AWS has. An endpoint is normalised (lower
// case, no port of its own, no last slash), because requests are signed for the host as it is
// written here. Without an endpoint the region says it, by Amazon's partition. The style follows:
// by path where the endpoint is the user's own or the bucket has a dot, which no wildcard
// certificate covers.
//
// What is parsed is checked so that it cannot be more than it says: an address with a user is
// refused without repeating it, and bucket, region and host have only characters that names have.

#include "storage/s3_address.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/percent_encoding.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kS3Options =
    "endpoint, region, style, requester-pays, listing, role-arn, sts-endpoint, token-file";
constexpr size_t kS3AddressBytesMax = 8192;
constexpr size_t kS3PrefixBytesMax = 1024;

std::unexpected<Status> BadS3Address(std::string_view why) {
  return Error(Code::kInvalidArgument, fmt::format("the address of the bucket: {}", why));
}

bool IsOneOf(std::string_view text, std::string_view more) {
  return std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || more.contains(c);
  });
}

// As it came, options decoded; unset ones are empty.
struct GivenOptions {
  std::string endpoint;
  std::string region;
  std::string style;
  std::string requester_pays;
  std::string listing;
  std::string role_arn;
  std::string sts_endpoint;
  std::string token_file;

  std::string* Find(std::string_view name) {
    const std::array<std::pair<std::string_view, std::string*>, 8> all = {
        {{"endpoint", &endpoint},
         {"region", &region},
         {"style", &style},
         {"requester-pays", &requester_pays},
         {"listing", &listing},
         {"role-arn", &role_arn},
         {"sts-endpoint", &sts_endpoint},
         {"token-file", &token_file}}};
    for (const auto& [known, value] : all) {
      if (known == name) return value;
    }
    return nullptr;
  }
};

Result<GivenOptions> ParseOptions(std::string_view query) {
  GivenOptions given;
  while (!query.empty()) {
    const std::string_view field = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(field.size() + 1, query.size()));
    const size_t equals = field.find('=');
    const std::string_view name = field.substr(0, equals);
    std::string* const value = given.Find(name);
    if (value == nullptr || equals == std::string_view::npos || equals + 1 == field.size()) {
      return BadS3Address(fmt::format(
          "\"{}\" is no option with a value; there are {}. A ? in a prefix is written %3F", field,
          kS3Options));
    }
    if (!value->empty()) return BadS3Address(fmt::format("{} is given twice", name));
    Result<std::string> decoded = PercentDecode(field.substr(equals + 1));
    if (!decoded) return BadS3Address(fmt::format("{} has {}", name, decoded.error().message()));
    *value = *std::move(decoded);
  }
  return given;
}

// "https://host:port/path": in lower case up to the path, without the port that is the scheme's
// own and without a last slash.
Result<std::string> CheckEndpoint(std::string_view name, std::string_view text) {
  const bool secure = text.starts_with("https://");
  if (!secure && !text.starts_with("http://")) {
    return BadS3Address(
        fmt::format("{}={}: write http://host or https://host", name, text.substr(0, 200)));
  }
  const size_t host_at = text.find("//") + 2;
  const size_t path_at = std::min(text.find('/', host_at), text.size());
  std::string host(text.substr(host_at, path_at - host_at));
  // Without repeating it: it holds a password.
  if (host.contains('@')) return BadS3Address(fmt::format("{} has a user in it", name));
  std::ranges::transform(host, host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::string_view own_port = secure ? ":443" : ":80";
  if (host.ends_with(own_port)) host.resize(host.size() - own_port.size());
  std::string_view path = text.substr(path_at);
  while (path.ends_with('/'))
    path.remove_suffix(1);
  const bool right_path =
      std::ranges::all_of(path, [](unsigned char c) { return c > ' ' && c < 0x7f; }) &&
      path.find_first_of("?#") == std::string_view::npos;
  if (host.empty() || !IsOneOf(host, ".-:[]_") || !right_path)
    return BadS3Address(fmt::format("{}={}: this is no host", name, text.substr(0, 200)));
  return fmt::format("{}://{}{}", secure ? "https" : "http", host, path);
}

std::string_view WithoutPort(std::string_view host) {
  return host.substr(0, host.starts_with('[') ? host.find(']') + 1 : host.find(':'));
}

// Amazon's partitions that have a domain of their own, by the begin of their regions' names.
struct AmazonPartition {
  std::string_view regions;
  std::string_view domain;
};
constexpr std::array kAmazonPartitions = {
    AmazonPartition{"cn-", "amazonaws.com.cn"},    AmazonPartition{"eusc-", "amazonaws.eu"},
    AmazonPartition{"us-iso-", "c2s.ic.gov"},      AmazonPartition{"us-isob-", "sc2s.sgov.gov"},
    AmazonPartition{"us-isof-", "csp.hci.ic.gov"}, AmazonPartition{"eu-isoe-", "cloud.adc-e.uk"}};

// "s3" or "sts" of a region.
std::string AmazonEndpoint(std::string_view service, std::string_view region) {
  const auto* const own = std::ranges::find_if(
      kAmazonPartitions, [&](const auto& each) { return region.starts_with(each.regions); });
  return fmt::format("https://{}.{}.{}", service, region,
                     own == kAmazonPartitions.end() ? "amazonaws.com" : own->domain);
}

std::string FirstOf(const std::string& given, const Environment& environment,
                    std::initializer_list<const char*> names) {
  if (!given.empty()) return given;
  for (const char* const name : names) {
    if (const std::optional<std::string> value = environment(name)) return *value;
  }
  return {};
}

Status FillIdentity(const GivenOptions& given, bool own_endpoint, const Environment& environment,
                    S3Address& address) {
  address.role_arn = given.role_arn;
  address.token_file = given.token_file;
  const bool keys = environment("AWS_ACCESS_KEY_ID").has_value();
  if (!address.role_arn.empty() && address.token_file.empty()) {
    address.token_file = environment("AWS_WEB_IDENTITY_TOKEN_FILE").value_or("");
    if (address.token_file.empty()) {
      return BadS3Address(
                 "role-arn is given, and neither token-file nor "
                 "AWS_WEB_IDENTITY_TOKEN_FILE says where the token is")
          .error();
    }
  }
  if (address.token_file.empty() && !keys) {
    address.token_file = environment("AWS_WEB_IDENTITY_TOKEN_FILE").value_or("");
    if (!address.token_file.empty()) address.role_arn = environment("AWS_ROLE_ARN").value_or("");
  }
  if (address.token_file.empty()) return OkStatus();
  std::string endpoint = FirstOf(given.sts_endpoint, environment, {"AWS_ENDPOINT_URL_STS"});
  if (endpoint.empty())
    endpoint = own_endpoint ? address.endpoint : AmazonEndpoint("sts", address.region);
  ASSIGN_OR_RETURN(address.sts_endpoint, CheckEndpoint("sts-endpoint", endpoint));
  return OkStatus();
}

Result<S3Address::Style> ParseStyle(const std::string& style, bool own_endpoint,
                                    std::string_view bucket) {
  if (style == "path") return S3Address::Style::kPath;
  if (style == "virtual") return S3Address::Style::kVirtualHost;
  if (!style.empty()) return BadS3Address("style is path or virtual");
  // The certificate of *.s3.amazonaws.com does not hold for a dot more.
  const bool by_path = own_endpoint || bucket.contains('.');
  return by_path ? S3Address::Style::kPath : S3Address::Style::kVirtualHost;
}

Result<std::string> ParsePrefix(std::string_view text) {
  Result<std::string> prefix = PercentDecode(text);
  if (!prefix) return BadS3Address(fmt::format("the prefix has {}", prefix.error().message()));
  if (prefix->size() > kS3PrefixBytesMax || prefix->contains('\0'))
    return BadS3Address("the prefix is no part of a key");
  if (!prefix->empty() && !prefix->ends_with('/')) *prefix += '/';
  return prefix;
}

}  // namespace

std::string S3Address::name() const {
  return fmt::format("{}{}/{}", kS3Scheme, bucket, prefix);
}

Result<S3Address> ParseS3Address(std::string_view text, const Environment& environment) {
  if (!text.starts_with(kS3Scheme) || text.size() > kS3AddressBytesMax)
    return BadS3Address("it does not begin with s3://, or is too long");
  text.remove_prefix(kS3Scheme.size());
  const size_t question = std::min(text.find('?'), text.size());
  const std::string_view query = text.substr(std::min(question + 1, text.size()));
  const std::string_view place = text.substr(0, question);
  const size_t slash = std::min(place.find('/'), place.size());
  S3Address address;
  address.bucket = place.substr(0, slash);
  std::string folded = address.bucket;
  std::ranges::transform(folded, folded.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (folded.size() < 3 || folded.size() > 63 || !IsOneOf(folded, ".-_")) {
    return BadS3Address(fmt::format("\"{}\" is no name of a bucket. Write s3://bucket/prefix",
                                    address.bucket.substr(0, 100)));
  }
  ASSIGN_OR_RETURN(address.prefix, ParsePrefix(place.substr(std::min(slash + 1, place.size()))));
  ASSIGN_OR_RETURN(const GivenOptions given, ParseOptions(query));
  address.region = FirstOf(given.region, environment, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (address.region.empty()) address.region = "us-east-1";
  if (address.region.size() > 64 || !IsOneOf(address.region, "-_"))
    return BadS3Address("region is small letters, digits and dashes");
  const std::string endpoint =
      FirstOf(given.endpoint, environment, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  ASSIGN_OR_RETURN(address.endpoint,
                   CheckEndpoint("endpoint", endpoint.empty() ? AmazonEndpoint("s3", address.region)
                                                              : endpoint));
  ASSIGN_OR_RETURN(address.style, ParseStyle(given.style, !endpoint.empty(), address.bucket));
  if (!given.requester_pays.empty() && given.requester_pays != "true" &&
      given.requester_pays != "false")
    return BadS3Address("requester-pays is true or false");
  address.requester_pays = given.requester_pays == "true";
  if (given.listing.size() > kS3PrefixBytesMax || given.listing.ends_with('/') ||
      given.listing.contains('\0'))
    return BadS3Address("listing is the key of an object");
  if (given.listing.starts_with('/'))
    return BadS3Address("listing: keys do not begin with a slash: leave it out");
  address.listing = given.listing;
  RETURN_IF_ERROR(FillIdentity(given, !endpoint.empty(), environment, address));
  return address;
}

bool IsLoopbackHost(std::string_view host) {
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") &&
          std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); }));
}

bool S3Place::confidential() const {
  return encrypted() || IsLoopbackHost(WithoutPort(host));
}

bool S3Place::unpacks_gzip() const {
  return WithoutPort(host).ends_with(".googleapis.com");
}

S3Place PlaceOf(const S3Address& address) {
  const size_t host_at = address.endpoint.find("//") + 2;
  const size_t path_at = std::min(address.endpoint.find('/', host_at), address.endpoint.size());
  const std::string scheme = address.endpoint.substr(0, host_at);
  std::string host = address.endpoint.substr(host_at, path_at - host_at);
  std::string path = address.endpoint.substr(path_at);
  if (address.style == S3Address::Style::kVirtualHost) {
    host = address.bucket + "." + host;
  } else {
    path += "/" + address.bucket;
  }
  return {.origin = scheme + host, .host = host, .path = std::move(path)};
}

}  // namespace optcache::storage
