#pragma once

// The conditions of a request for an object (RFC 9110, section 13). Pure.

#include <cstdint>
#include <string_view>

#include "net/http.h"

namespace optcache::sidecar {

// What conditions are compared with. The texts are the caller's.
struct ObjectVersion {
  std::string_view etag;        // a strong one, with its quotes
  std::int64_t modified_s = 0;  // seconds since 1970; 0: not known, and no time is compared with it
};

enum class Precondition {
  kHolds,
  kNotModified,             // 304
  kIfMatchFails,            // 412
  kIfUnmodifiedSinceFails,  // 412
};

// Of GET and HEAD. If-Match goes before If-Unmodified-Since, which is passed over beside it, and
// these before If-None-Match and If-Modified-Since, of which the same holds. A time that is none is
// passed over.
Precondition CheckPreconditions(const net::HttpHeaders& headers, const ObjectVersion& version);

// Does Range count? With If-Range only if that names this very version.
bool RangeCounts(const net::HttpHeaders& headers, const ObjectVersion& version);

}  // namespace optcache::sidecar
