#pragma once

// A page of ListObjectsV2, as S3 sends it.

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::storage {

// S3 sends 1,000 keys, which are 4 MiB at most: a key of 1,024 bytes takes 3 KiB when it is
// encoded.
inline constexpr ByteCount kS3PageBytesMax = 16_MiB;
inline constexpr size_t kS3KeysPerPageMax = 10000;
// A short tag takes 16 times its bytes once it is parsed, and 16 pages are parsed at a time. A key
// has 12 to 28 tags.
inline constexpr size_t kS3PageTagsMax = 400'000;
inline constexpr size_t kS3KeyBytesMax = 1024;
inline constexpr size_t kS3TokenBytesMax = 8192;

struct S3Key {
  std::string key;
  ByteCount size = 0;
  std::string etag;  // quotes included; empty: not told
  friend bool operator==(const S3Key&, const S3Key&) = default;
};

struct S3Page {
  std::vector<S3Key> keys;                   // ascending by their bytes
  std::vector<std::string> common_prefixes;  // ascending; what a delimiter rolls up
  bool truncated = false;                    // there is more
  // By which to ask for the next page. Of a page that is truncated and has nothing on it alone:
  // others are continued from their last key, and a token of theirs is not kept.
  std::string next_token{};

  // Of keys and common prefixes, or empty if there is none: where the next page begins after.
  std::string_view last() const;
};

// A key as S3 writes it in XML and CSV: percent-encoded, with a plus for a blank. kInvalidArgument:
// it is badly encoded, or has not 1 to kS3KeyBytesMax bytes.
Result<std::string> DecodeS3Key(std::string_view text);

// An ETag as it stands in a header, with quotes, which lists leave out. Empty stays empty.
// kInvalidArgument: it is none.
Result<std::string> QuotedETag(std::string_view text);

// kDataLoss: it is no such page, or breaks a limit, or its keys are not in order, with what and
// where. Keys are decoded if the page says that they are encoded (encoding-type=url).
Result<S3Page> ParseS3Page(std::string_view xml);

}  // namespace optcache::storage
