// Any text as what S3 answers: a page of keys, an error, a header with a checksum, or a token
// service's keys: read or refused, never more.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/base64.h"
#include "storage/s3_address.h"
#include "storage/s3_checksums.h"
#include "storage/s3_customer_key.h"
#include "storage/s3_error.h"
#include "storage/s3_listing.h"
#include "storage/s3_web_identity.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace storage = optcache::storage;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto page = storage::ParseS3Page(text)) {
    Check(page->keys.size() <= storage::kS3KeysPerPageMax);
    for (const storage::S3Key& key : page->keys) {
      Check(!key.key.empty() && key.key.size() <= storage::kS3KeyBytesMax);
      Check(key.key <= page->last());
      Check(key.etag.empty() || key.etag.ends_with('"'));
    }
    Check(page->next_token.empty() == !(page->truncated && page->last().empty()));
    Check(page->next_token.size() <= storage::kS3TokenBytesMax);
  } else {
    Check(page.error().code() == optcache::Code::kDataLoss);
  }
  const storage::S3Error error = storage::ParseS3Error(text);
  Check(error.message.size() <= 300);
  Check(!storage::S3Status({.http_status = 400, .error = error}, "what").ok());
  for (const std::string& header : storage::S3ChecksumHeaders()) {
    const auto told = storage::ParseS3Checksums({{header, std::string(text)}});
    Check(told.size() <= 1);
    for (const storage::ToldSum& sum : told) {
      Check(sum.value.size() == storage::SumBytes(sum.kind));
      Check(optcache::EncodeBase64(sum.value).size() == text.size());
      storage::WholeSums sums(told);
      sums.Add(optcache::AsBytes(text));
      const optcache::Status compared = sums.Compare();
      Check(compared.ok() || compared.code() == optcache::Code::kDataLoss);
    }
    Check(storage::ParseS3Checksums({{header, std::string(text) + "-3"}}).empty());
  }
  if (const auto keys = storage::ParseWebIdentityAnswer(text)) {
    Check(!keys->credentials.anonymous());
  } else {
    Check(keys.error().code() == optcache::Code::kDataLoss);
  }
  if (const auto key = storage::ParseS3CustomerKey(text)) {
    Check(key->key == text && key->key.size() == 44 && key->key_md5.size() == 24);
  } else {
    Check(key.error().code() == optcache::Code::kInvalidArgument);
  }
  const auto nothing = [](const char* /*name*/) { return std::optional<std::string>(); };
  if (const auto address = storage::ParseS3Address(text, nothing)) {
    Check(address->prefix.empty() || address->prefix.ends_with('/'));
    const storage::S3Place place = storage::PlaceOf(*address);
    Check(place.origin.ends_with(place.host) && !place.host.empty());
  } else {
    Check(address.error().code() == optcache::Code::kInvalidArgument);
  }
  return 0;
}
