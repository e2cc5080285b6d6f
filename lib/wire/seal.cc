#include "wire/seal.h"

#include <utility>

#include "base/check.h"

namespace optcache::wire {

FrameSeal::FrameSeal(std::unique_ptr<FrameMac> mac) : mac_(std::move(mac)) {
  CHECK(mac_ != nullptr);
}

Tag FrameSeal::Next(ByteSpan head) {
  return mac_->Compute(next_++, head);
}

void FrameSeal::Withdraw(std::uint64_t frames) {
  CHECK(frames <= next_);
  next_ -= frames;
}

bool FrameSeal::Accept(ByteSpan head, ByteSpan tag) {
  CHECK(tag.size() == kTagBytes);
  const Tag expected = mac_->Compute(next_++, head);
  std::byte difference{0};
  for (std::size_t i = 0; i < kTagBytes; ++i)
    difference |= expected.at(i) ^ tag[i];
  return difference == std::byte{0};
}

}  // namespace optcache::wire
