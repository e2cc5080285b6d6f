#pragma once

// The XML that S3 answers with. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "sidecar/s3/key_space.h"
#include "sidecar/s3/s3_request.h"

namespace optcache::sidecar {

// A page of a listing. Keys and common prefixes count together against max_keys.
struct Listing {
  std::vector<FoundObject> objects;          // by rising keys
  std::vector<std::string> common_prefixes;  // rising
  bool truncated = false;
  std::string last;  // the key or common prefix after which the next page begins; empty: no page
};

Listing ListKeys(const BucketView& bucket, const ListQuery& query);

// For either version of the listing.
std::string ListingPage(const S3Request& request, const Listing& listing);

// `resource` is the path that was asked for.
std::string ErrorPage(const S3Error& error, std::string_view resource, std::string_view request_id);
std::string BucketsPage(const std::vector<std::string>& names);
// Plain text, for a person who looks what this port is.
std::string PageForPeople(const std::vector<std::string>& names);
// us-east-1 is told as S3 does: by nothing.
std::string LocationPage(std::string_view region);
std::string VersioningPage();

// Text between tags: what XML takes for its own is escaped, and so are control characters. A byte
// that is no UTF-8 becomes U+FFFD.
std::string EscapeXml(std::string_view text);

}  // namespace optcache::sidecar
