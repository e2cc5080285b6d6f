#include "net/internal/bulk.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "base/check.h"

namespace optcache::net {
namespace {

constexpr std::string_view kLabel = "EXPORTER-optcache-bulk";

struct FreeMac {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

const unsigned char* Raw(ByteSpan bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// HMAC-SHA-256, of which a tag is the first half.
class HmacFrameMac final : public wire::FrameMac {
 public:
  explicit HmacFrameMac(ByteSpan key) {
    const std::unique_ptr<EVP_MAC, FreeMac> hmac(
        EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr));
    CHECK(hmac != nullptr);
    context_.reset(EVP_MAC_CTX_new(hmac.get()));
    CHECK(context_ != nullptr);
    std::array<char, 7> digest = {"SHA256"};
    const std::array<OSSL_PARAM, 2> params = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
        OSSL_PARAM_construct_end()};
    CHECK(EVP_MAC_init(context_.get(), Raw(key), key.size(), params.data()) == 1);
  }

  wire::Tag Compute(std::uint64_t number, ByteSpan head) override {
    std::array<std::byte, 8> prefix = {};
    for (std::size_t i = 0; i < prefix.size(); ++i)
      prefix.at(i) = static_cast<std::byte>(number >> (8 * i));
    std::array<unsigned char, 32> sum = {};
    std::size_t length = 0;
    // Without a key: the same once more.
    CHECK(EVP_MAC_init(context_.get(), nullptr, 0, nullptr) == 1);
    CHECK(EVP_MAC_update(context_.get(), Raw(prefix), prefix.size()) == 1);
    CHECK(EVP_MAC_update(context_.get(), Raw(head), head.size()) == 1);
    CHECK(EVP_MAC_final(context_.get(), sum.data(), &length, sum.size()) == 1);
    CHECK(length == sum.size());
    wire::Tag tag = {};
    std::ranges::copy(std::as_bytes(std::span(sum)).first(tag.size()), tag.begin());
    return tag;
  }

 private:
  std::unique_ptr<EVP_MAC_CTX, FreeMac> context_;
};

wire::FrameSeal SealWith(ByteSpan key) {
  return wire::FrameSeal(std::make_unique<HmacFrameMac>(key));
}

}  // namespace

BulkSeals MakeBulkSeals(ByteSpan key) {
  CHECK(key.size() == kBulkKeyBytes);
  return {.of_dialer = SealWith(key.first(kBulkKeyBytes / 2)),
          .of_acceptor = SealWith(key.subspan(kBulkKeyBytes / 2))};
}

bool CanLeaveTls(const Stream& stream) {
  return stream.is_tls() && stream.tls()->is_tls13();
}

Result<BulkSeals> LeaveTls(Stream& stream) {
  std::array<std::byte, kBulkKeyBytes> key = {};
  if (!stream.tls()->ExportKey(kLabel, key)) {
    return Error(Code::kInternal, "TLS gave no key for bulk; switch bulk off");
  }
  BulkSeals seals = MakeBulkSeals(key);
  OPENSSL_cleanse(key.data(), key.size());
  stream.LeaveTls();
  return seals;
}

}  // namespace optcache::net
