#include "storage/s3_listing.h"

#include <algorithm>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "base/percent_encoding.h"
#include "base/utf8.h"
#include "base/whole_number.h"
#include "dataset/validator.h"

namespace optcache::storage {
namespace {

std::unexpected<Status> BadPage(std::string_view why) {
  return Error(Code::kDataLoss,
               fmt::format("what came is no listing of a bucket: {}. Is this an S3 server?", why));
}

Result<std::string> CheckedKey(std::string key) {
  if (!key.empty() && key.size() <= kS3KeyBytesMax) return key;
  return Error(Code::kInvalidArgument, fmt::format("a key of {} bytes", key.size()));
}

Result<std::string> ReadKeyText(std::string_view text, bool encoded) {
  Result<std::string> key = encoded ? DecodeS3Key(text) : CheckedKey(std::string(text));
  if (!key) return BadPage(key.error().message());
  return key;
}

Result<std::string> ReadETagText(std::string_view text) {
  Result<std::string> etag = QuotedETag(text);
  if (!etag) return BadPage(etag.error().message());
  return etag;
}

Result<S3Key> ReadContents(const pugi::xml_node& node, bool encoded) {
  S3Key out;
  ASSIGN_OR_RETURN(out.key, ReadKeyText(node.child_value("Key"), encoded));
  const std::string_view size = node.child_value("Size");
  const auto bytes = ParseWholeNumber<ByteCount>(size);
  if (!bytes)
    return BadPage(fmt::format("\"{}\" is not the size of {}", size.substr(0, 40), out.key));
  out.size = *bytes;
  ASSIGN_OR_RETURN(out.etag, ReadETagText(node.child_value("ETag")));
  return out;
}

template <typename T, typename KeyOf>
bool Ascends(const std::vector<T>& items, KeyOf key_of) {
  return std::ranges::adjacent_find(items, std::ranges::greater_equal{}, key_of) == items.end();
}

}  // namespace

Result<std::string> DecodeS3Key(std::string_view text) {
  std::string with_blanks(text);
  std::ranges::replace(with_blanks, '+', ' ');
  Result<std::string> key = PercentDecode(with_blanks);
  if (!key) {
    return Error(Code::kInvalidArgument,
                 fmt::format("the key {} is badly encoded", Visible(text.substr(0, 100))));
  }
  return CheckedKey(*std::move(key));
}

Result<std::string> QuotedETag(std::string_view text) {
  if (text.empty()) return std::string();
  std::string etag = text.ends_with('"') ? std::string(text) : fmt::format("\"{}\"", text);
  if (dataset::CheckETag(etag).ok()) return etag;
  return Error(Code::kInvalidArgument, "an ETag that is none");
}

std::string_view S3Page::last() const {
  const std::string_view key = keys.empty() ? std::string_view() : keys.back().key;
  const std::string_view prefix =
      common_prefixes.empty() ? std::string_view() : common_prefixes.back();
  return std::max(key, prefix);
}

Result<S3Page> ParseS3Page(std::string_view xml) {
  if (xml.size() > kS3PageBytesMax) return BadPage("it is too long");
  if (static_cast<size_t>(std::ranges::count(xml, '<')) > kS3PageTagsMax)
    return BadPage("it has too many tags");
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(xml.data(), xml.size(),
                           pugi::parse_default | pugi::parse_ws_pcdata_single, pugi::encoding_utf8);
  if (!parsed) return BadPage(fmt::format("{} at byte {}", parsed.description(), parsed.offset));
  const pugi::xml_node list = document.child("ListBucketResult");
  if (!list) return BadPage("there is no ListBucketResult in it");
  const std::string_view encoding = list.child_value("EncodingType");
  if (!encoding.empty() && encoding != "url")
    return BadPage(fmt::format("keys are encoded by \"{}\"", encoding.substr(0, 40)));
  S3Page page;
  page.truncated = std::string_view(list.child_value("IsTruncated")) == "true";
  for (const pugi::xml_node& node : list.children("Contents")) {
    if (page.keys.size() >= kS3KeysPerPageMax) return BadPage("too many keys on a page");
    ASSIGN_OR_RETURN(S3Key key, ReadContents(node, !encoding.empty()));
    page.keys.push_back(std::move(key));
  }
  for (const pugi::xml_node& node : list.children("CommonPrefixes")) {
    if (page.common_prefixes.size() >= kS3KeysPerPageMax)
      return BadPage("too many common prefixes on a page");
    ASSIGN_OR_RETURN(std::string prefix,
                     ReadKeyText(node.child_value("Prefix"), !encoding.empty()));
    page.common_prefixes.push_back(std::move(prefix));
  }
  if (!Ascends(page.keys, &S3Key::key) || !Ascends(page.common_prefixes, std::identity{}))
    return BadPage("its keys are not in the order of their bytes");
  if (page.truncated && page.last().empty()) {
    // Not encoded, whatever keys are.
    page.next_token = list.child_value("NextContinuationToken");
    if (page.next_token.empty() || page.next_token.size() > kS3TokenBytesMax) {
      return BadPage(fmt::format("it is empty, there shall be more, and its token has {} bytes",
                                 page.next_token.size()));
    }
  }
  return page;
}

}  // namespace optcache::storage
