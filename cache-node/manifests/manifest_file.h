#pragma once

// A manifest's file while it comes and while it goes, piece by piece: of a manifest of gigabytes no
// more than a piece lies in memory.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/shared_bytes.h"
#include "base/unique_fd.h"
#include "dataset/digest.h"
#include "net/http_body.h"

namespace optcache::node {

// A manifest that comes. Lies beside the file that it will be, and is removed unless it is kept.
class ManifestWriter final : public net::HttpBodySink {
 public:
  // `bytes` will come, no more and no less.
  static Result<std::shared_ptr<ManifestWriter>> Open(const std::string& file, ByteCount bytes);
  ~ManifestWriter() override;

  // kInvalidArgument: more than was said. kResourceExhausted: the volume is full.
  Status Write(std::string_view bytes) override;
  // When all has come: checks it and gives the file its name. Takes seconds for hundreds of MiB.
  // kInvalidArgument: another digest, no manifest, or one that lists more than
  // `manifest_samples_max` (0: any number).
  Status Keep(const std::string& digest, std::uint32_t manifest_samples_max);

 private:
  ManifestWriter(std::string file, std::string temporary, UniqueFd fd, ByteCount bytes);

  std::string file_;
  std::string temporary_;  // empty: it has its name
  UniqueFd fd_;
  const ByteCount bytes_;
  ByteCount written_ = 0;
};

// A manifest that goes. Its digest is computed on the way: what is damaged never goes as a whole.
class ManifestReader final : public net::HttpBodySource {
 public:
  // Called on the thread that reads, when the bytes turned out not to be those of the digest.
  using OnDamage = std::function<void(const Status& why)>;
  static Result<std::shared_ptr<ManifestReader>> Open(const std::string& file, std::string digest,
                                                      OnDamage on_damage);

  ByteCount size() const override { return size_; }
  Result<std::string> Read(std::size_t most) override;

 private:
  ManifestReader(std::string file, std::string digest, OnDamage on_damage, UniqueFd fd,
                 ByteCount size);
  Result<std::string> ReadOn(std::size_t most);

  const std::string file_;
  const std::string digest_;
  const OnDamage on_damage_;
  const UniqueFd fd_;
  const ByteCount size_;
  ByteCount read_ = 0;
  dataset::Sha256 sha256_;
};

// The whole file, mapped; takes seconds for hundreds of MiB. kDataLoss: the bytes are not those of
// that digest.
Result<SharedBytes> MapManifest(const std::string& file, const std::string& digest);

}  // namespace optcache::node
