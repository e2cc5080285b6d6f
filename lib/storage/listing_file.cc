#include "storage/listing_file.h"

#include <set>
#include <string>

#include <fmt/format.h>

#include "base/utf8.h"
#include "base/whole_number.h"
#include "dataset/manifest.h"

namespace optcache::storage {
namespace {

constexpr size_t kQuotedBytesMax = 100;

// For a message: what is no listing may be anything, and one line of it gigabytes.
std::string Excerpt(std::string_view field) {
  return Visible(field.substr(0, kQuotedBytesMax));
}

// Takes what stands before the next `separator` off the front.
std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view field = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return field;
}

Result<ListingLine> ParseLine(std::string_view line) {
  ListingLine object = {.name = TakeUntil(line, '\t'), .info = {}};
  if (object.name.empty()) return Error(Code::kInvalidArgument, "it begins with a tab");
  if (line.empty()) return object;
  const std::string_view digits = TakeUntil(line, '\t');
  const auto size = ParseWholeNumber<ByteCount>(digits);
  if (!size) {
    return Error(Code::kInvalidArgument,
                 fmt::format("\"{}\" is not a size in bytes", Excerpt(digits)));
  }
  if (line.find('\t') != std::string_view::npos) {
    return Error(Code::kInvalidArgument, "more than three fields");
  }
  if (!line.empty() && !dataset::IsETag(line)) {
    return Error(Code::kInvalidArgument,
                 fmt::format("{} is not an ETag: write it as the server sends it, \"...\" or "
                             "W/\"...\", or leave it out",
                             Excerpt(line)));
  }
  RETURN_IF_ERROR(dataset::CheckETag(line));
  ObjectInfo info{.size = *size};
  info.validator.etag = line;
  object.info = std::move(info);
  return object;
}

}  // namespace

Status ReadListing(std::string_view text, const std::function<Status(ListingLine line)>& take) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    std::string_view line = TakeUntil(text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    Result<ListingLine> object = ParseLine(line);
    Status taken = object ? take(*std::move(object)) : std::move(object).error();
    if (!taken.ok()) return std::move(taken).WithContext(fmt::format("line {}", number));
  }
  return OkStatus();
}

Result<ObjectListing> ParseListing(std::string_view text, std::string_view self) {
  ObjectListing listing;
  std::set<std::string, std::less<>> folders;
  const auto take = [&](ListingLine line) -> Status {
    std::string_view path = line.name;
    if (path.starts_with("./")) path.remove_prefix(2);
    RETURN_IF_ERROR(dataset::CheckObjectPath(path));
    if (path == self) return OkStatus();
    if (const size_t slash = path.find('/'); slash != std::string_view::npos) {
      if (!folders.contains(path.substr(0, slash))) folders.emplace(path.substr(0, slash));
    }
    listing.objects.push_back({.path = std::string(path), .info = std::move(line.info)});
    return OkStatus();
  };
  RETURN_IF_ERROR(ReadListing(text, take));
  listing.top_folders.assign(folders.begin(), folders.end());
  return listing;
}

}  // namespace optcache::storage
