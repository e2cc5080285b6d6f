#include "sidecar/s3/preconditions.h"

#include <algorithm>
#include <optional>
#include <string>

#include "sidecar/s3/http_date.h"

namespace optcache::sidecar {
namespace {

enum class Comparison { kStrong, kWeak };

std::string_view TrimmedOfBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// Takes the first of a list's ETags off its front, without what separates it from the next.
std::string_view TakeETag(std::string_view& list) {
  const bool weak = list.starts_with("W/");
  const std::size_t quote = weak ? 2 : 0;
  std::size_t end = list.find(',');
  if (list.substr(quote).starts_with('"')) {  // a comma may stand within the quotes
    end = list.find('"', quote + 1);
    if (end != std::string_view::npos) ++end;
  }
  const std::string_view etag = list.substr(0, end);
  list.remove_prefix(std::min(end, list.size()));
  return TrimmedOfBlanks(etag);
}

// Is the object one of those that the header lists? Some clients leave the quotes out.
bool Lists(std::string_view header, std::string_view etag, Comparison comparison) {
  if (TrimmedOfBlanks(header) == "*") return true;
  while (true) {
    header.remove_prefix(std::min(header.find_first_not_of(" \t,"), header.size()));
    if (header.empty()) return false;
    std::string_view one = TakeETag(header);
    if (one.starts_with("W/")) {
      if (comparison == Comparison::kStrong) continue;
      one.remove_prefix(2);
    }
    const bool unquoted = one.size() + 2 == etag.size() && etag.substr(1, one.size()) == one;
    if (one == etag || unquoted) return true;
  }
}

// A list may stand in several headers of one name.
bool AnyLists(const net::HttpHeaders& headers, std::string_view name, std::string_view etag,
              Comparison comparison) {
  return std::ranges::any_of(headers, [&](const auto& header) {
    return net::SameWithoutCase(header.first, name) && Lists(header.second, etag, comparison);
  });
}

std::optional<std::int64_t> TimeIn(const net::HttpHeaders& headers, std::string_view name) {
  const auto text = net::FindHeader(headers, name);
  return text ? ParseHttpDate(TrimmedOfBlanks(*text)) : std::nullopt;
}

}  // namespace

Precondition CheckPreconditions(const net::HttpHeaders& headers, const ObjectVersion& version) {
  const bool has_time = version.modified_s != 0;
  if (net::FindHeader(headers, "If-Match")) {
    if (!AnyLists(headers, "If-Match", version.etag, Comparison::kStrong))
      return Precondition::kIfMatchFails;
  } else if (const auto time = TimeIn(headers, "If-Unmodified-Since");
             time && has_time && version.modified_s > *time) {
    return Precondition::kIfUnmodifiedSinceFails;
  }
  if (net::FindHeader(headers, "If-None-Match")) {
    return AnyLists(headers, "If-None-Match", version.etag, Comparison::kWeak)
               ? Precondition::kNotModified
               : Precondition::kHolds;
  }
  const auto time = TimeIn(headers, "If-Modified-Since");
  return time && has_time && version.modified_s <= *time ? Precondition::kNotModified
                                                         : Precondition::kHolds;
}

bool RangeCounts(const net::HttpHeaders& headers, const ObjectVersion& version) {
  const auto if_range = net::FindHeader(headers, "If-Range");
  if (!if_range || TrimmedOfBlanks(*if_range) == version.etag) return true;
  const auto time = TimeIn(headers, "If-Range");
  return time && version.modified_s != 0 && *time == version.modified_s;
}

}  // namespace optcache::sidecar
