#include "storage/internal/gunzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace optcache::storage::internal {
namespace {

constexpr int kGzipAlone = 16 + MAX_WBITS;  // not zlib's own format
constexpr size_t kTextPiece = 64_KiB;

}  // namespace

void Gunzip::End::operator()(z_stream_s* stream) const {
  ::inflateEnd(stream);
  delete stream;
}

Gunzip::Gunzip() : stream_(new z_stream_s{}) {
  CHECK(::inflateInit2(stream_.get(), kGzipAlone) == Z_OK);
}

Gunzip::~Gunzip() = default;

Status Gunzip::Add(ByteSpan packed, const Take& take) {
  std::array<char, kTextPiece>
      text;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled below
  while (!packed.empty()) {
    empty_ = false;
    const size_t length = std::min<size_t>(packed.size(), std::numeric_limits<unsigned int>::max());
    // zlib does not write to it.
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
    stream_->avail_in = static_cast<unsigned int>(length);
    if (!std::exchange(in_member_, true)) ::inflateReset(stream_.get());
    int result = Z_OK;
    do {
      stream_->next_out = reinterpret_cast<Bytef*>(text.data());
      stream_->avail_out = static_cast<unsigned int>(text.size());
      result = ::inflate(stream_.get(), Z_NO_FLUSH);
      if (result == Z_MEM_ERROR) return {Code::kResourceExhausted, "no memory to unpack it"};
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return {Code::kDataLoss,
                fmt::format("it is no gzip, or is damaged: {}",
                            stream_->msg == nullptr ? "zlib cannot say why" : stream_->msg)};
      }
      RETURN_IF_ERROR(take({text.data(), text.size() - stream_->avail_out}));
    } while (result != Z_STREAM_END && (stream_->avail_in > 0 || stream_->avail_out == 0));
    if (result == Z_STREAM_END) in_member_ = false;
    packed = packed.subspan(length - stream_->avail_in);
  }
  return OkStatus();
}

Status Gunzip::Finish() const {
  if (!in_member_ && !empty_) return OkStatus();
  return {Code::kDataLoss, "it ends early: it is to be a whole gzip file"};
}

}  // namespace optcache::storage::internal
