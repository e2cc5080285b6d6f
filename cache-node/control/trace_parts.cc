#include "cache-node/control/trace_parts.h"

#include <utility>

#include <fmt/format.h>

#include "sampler/id_list.h"

namespace optcache::node {

std::uint64_t TraceParts::SizeOf(const wire::StreamTrace& part) {
  constexpr std::uint64_t kMaxIds = 8ULL * coordination::kMaxTraceBytes;
  if (part.bits == 0 || part.bits > 32 || part.length == 0 || part.length > kMaxIds) return 0;
  const std::uint64_t size = sampler::ListHeader(part.length, part.bits).size() +
                             sampler::PackedBytes(part.length, part.bits);
  return size > coordination::kMaxTraceBytes ? 0 : size;
}

Status TraceParts::Add(const wire::StreamTrace& part) {
  if (part.offset == 0) {
    *this = {};
    bits_ = part.bits;
    length_ = part.length;
    size_ = SizeOf(part);
    if (size_ == 0) {
      return {Code::kInvalidArgument,
              fmt::format("a list of {} ids of {} bits: at most {} are taken", part.length,
                          part.bits, FormatBytes(coordination::kMaxTraceBytes))};
    }
    growing_ = sampler::ListHeader(length_, bits_);
    sha_.Update(AsBytes(growing_));
  }
  const std::uint64_t header = size_ - sampler::PackedBytes(length_, bits_);
  const bool fits = size_ != 0 && !whole() && part.bits == bits_ && part.length == length_ &&
                    header + part.offset == growing_.size() &&
                    part.packed.size() <= size_ - growing_.size();
  if (!fits) {
    return {Code::kInvalidArgument,
            fmt::format("a part of a list from byte {} on, of which {} are here of {}", part.offset,
                        growing_.size(), size_)};
  }
  growing_ += AsText(part.packed);
  sha_.Update(part.packed);
  if (growing_.size() < size_) return OkStatus();
  digest_ = dataset::ToHex(sha_.Finish());
  bytes_ = std::make_shared<const std::string>(std::move(growing_));
  return OkStatus();
}

}  // namespace optcache::node
