#pragma once

// The checksums that a store tells of a whole object, compared with the bytes that come.

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace optcache::storage {

enum class SumKind : std::uint8_t { kCrc32, kCrc32c, kCrc64Nvme, kSha1, kSha256 };

// How many bytes a sum of this kind has.
std::size_t SumBytes(SumKind kind);

struct ToldSum {
  SumKind kind{};
  std::string value;  // its SumBytes bytes, those of a CRC with the highest first

  friend bool operator==(const ToldSum&, const ToldSum&) = default;
};

// Sums of an object's bytes as they arrive, beside those that its store tells. A copy goes on by
// itself, so a read of the rest takes one along. Not thread-safe: a value.
class WholeSums {
 public:
  // A hash that OpenSSL is set up not to make is left out.
  explicit WholeSums(const std::vector<ToldSum>& told);
  ~WholeSums();
  WholeSums(const WholeSums& other);
  WholeSums(WholeSums&& other) noexcept;
  WholeSums& operator=(const WholeSums& other);
  WholeSums& operator=(WholeSums&& other) noexcept;

  // The next bytes; the first of them are the object's first.
  void Add(ByteSpan bytes);

  // kDataLoss if a sum of what has come is not what the store tells; says which, and both in
  // base64, as S3's tools do.
  Status Compare() const;

 private:
  struct Sum;

  std::vector<Sum> sums_;  // nearly always one
};

}  // namespace optcache::storage
