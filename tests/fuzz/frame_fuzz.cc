// One frame from hostile bytes, as they are and with a CRC made right: no crash, and what decodes
// encodes to the same message again.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/crc32c.h"
#include "wire/codec.h"

using namespace optcache;  // NOLINT(google-build-using-namespace)

namespace {

void Decode(ByteSpan bytes) {
  const auto decoded = wire::DecodeFrame(bytes);
  if (!decoded) return;
  const auto* frame = std::get_if<wire::Frame>(&*decoded);
  if (frame == nullptr) return;

  std::vector<std::byte> again;
  CHECK(wire::AppendFrame(frame->request_id, frame->message, frame->payload_length, again).ok());
  const auto second = wire::DecodeFrame(again);
  CHECK(second.has_value());
  const auto& copy = std::get<wire::Frame>(*second);
  CHECK(copy.message == frame->message);
  CHECK(copy.request_id == frame->request_id && copy.payload_length == frame->payload_length);
}

// A fuzzer finds no checksums: the frame as long as the input, rightly signed.
std::vector<std::byte> Signed(ByteSpan bytes) {
  std::vector<std::byte> frame(bytes.begin(), bytes.end());
  const ByteSpan view(frame);
  const auto body_length = static_cast<std::uint32_t>(frame.size() - wire::kHeaderBytes);
  for (std::size_t i = 0; i < 4; ++i) {
    frame[12 + i] = static_cast<std::byte>(body_length >> (8 * i));
  }
  const std::uint32_t crc = Crc32c(view.subspan(wire::kHeaderBytes), Crc32c(view.first(24)));
  for (std::size_t i = 0; i < 4; ++i)
    frame[24 + i] = static_cast<std::byte>(crc >> (8 * i));
  return frame;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  Decode(bytes);
  if (size >= wire::kHeaderBytes) Decode(Signed(bytes));
  return 0;
}
