#include "storage/whole_sums.h"

#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/base64.h"
#include "base/check.h"
#include "base/crc32.h"
#include "base/crc32c.h"
#include "base/crc64.h"

namespace optcache::storage {
namespace {

struct SumRule {
  std::string_view name;
  std::size_t bytes = 0;
  // One of the two.
  std::uint64_t (*crc)(ByteSpan bytes, std::uint64_t so_far) = nullptr;
  const EVP_MD* (*hash)() = nullptr;
};

template <std::uint32_t (*crc)(ByteSpan, std::uint32_t)>
std::uint64_t Widened(ByteSpan bytes, std::uint64_t so_far) {
  return crc(bytes, static_cast<std::uint32_t>(so_far));
}

// In the order of SumKind.
constexpr std::array<SumRule, 5> kSumRules = {{
    {.name = "CRC-32", .bytes = 4, .crc = Widened<Crc32>},
    {.name = "CRC-32C", .bytes = 4, .crc = Widened<Crc32c>},
    {.name = "CRC-64/NVME", .bytes = 8, .crc = Crc64Nvme},
    {.name = "SHA-1", .bytes = 20, .hash = EVP_sha1},
    {.name = "SHA-256", .bytes = 32, .hash = EVP_sha256},
}};
static_assert(kSumRules.size() == static_cast<std::size_t>(SumKind::kSha256) + 1);

const SumRule& RuleOf(SumKind kind) {
  return kSumRules.at(static_cast<std::size_t>(kind));
}

struct FreeHash {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// A hash of OpenSSL's with what has come of its bytes. A value.
class Hash {
 public:
  // Nothing if OpenSSL is set up not to make such a hash.
  static std::optional<Hash> Of(const EVP_MD* kind) {
    Hash hash;
    if (EVP_DigestInit_ex(hash.context_.get(), kind, nullptr) != 1) return std::nullopt;
    return hash;
  }
  ~Hash() = default;
  Hash(const Hash& other) : Hash() {
    CHECK(EVP_MD_CTX_copy_ex(context_.get(), other.context_.get()) == 1);
  }
  Hash(Hash&& other) noexcept = default;
  Hash& operator=(const Hash& other) { return *this = Hash(other); }
  Hash& operator=(Hash&& other) noexcept = default;

  void Add(ByteSpan bytes) {
    CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  // Of a copy: more may come.
  std::string Value() const {
    const Hash ended = *this;
    std::array<unsigned char, EVP_MAX_MD_SIZE> value = {};
    unsigned length = 0;
    CHECK(EVP_DigestFinal_ex(ended.context_.get(), value.data(), &length) == 1);
    return {value.begin(), value.begin() + length};
  }

 private:
  Hash() : context_(EVP_MD_CTX_new()) { CHECK(context_ != nullptr); }

  std::unique_ptr<EVP_MD_CTX, FreeHash> context_;
};

}  // namespace

struct WholeSums::Sum {
  std::string Value() const {
    if (hash) return hash->Value();
    std::string value;
    for (std::size_t i = rule->bytes; i > 0; --i)
      value += static_cast<char>(crc >> (8 * (i - 1)));
    return value;
  }

  const SumRule* rule = nullptr;
  std::string told;
  std::uint64_t crc = 0;
  std::optional<Hash> hash{};
};

std::size_t SumBytes(SumKind kind) {
  return RuleOf(kind).bytes;
}

WholeSums::WholeSums(const std::vector<ToldSum>& told) {
  for (const ToldSum& one : told) {
    const SumRule& rule = RuleOf(one.kind);
    Sum sum = {.rule = &rule, .told = one.value};
    if (rule.hash != nullptr) sum.hash = Hash::Of(rule.hash());
    if (rule.crc != nullptr || sum.hash) sums_.push_back(std::move(sum));
  }
}

WholeSums::~WholeSums() = default;
WholeSums::WholeSums(const WholeSums& other) = default;
WholeSums::WholeSums(WholeSums&& other) noexcept = default;
WholeSums& WholeSums::operator=(const WholeSums& other) = default;
WholeSums& WholeSums::operator=(WholeSums&& other) noexcept = default;

void WholeSums::Add(ByteSpan bytes) {
  for (Sum& sum : sums_) {
    if (sum.hash) {
      sum.hash->Add(bytes);
    } else {
      sum.crc = sum.rule->crc(bytes, sum.crc);
    }
  }
}

Status WholeSums::Compare() const {
  for (const Sum& sum : sums_) {
    const std::string value = sum.Value();
    if (value == sum.told) continue;
    return {Code::kDataLoss,
            fmt::format("the {} of what came is {}, the store says {}", sum.rule->name,
                        EncodeBase64(value), EncodeBase64(sum.told))};
  }
  return OkStatus();
}

}  // namespace optcache::storage
