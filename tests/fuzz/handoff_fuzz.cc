// What a training process may send, as one body of every type and as a stream in cuts: no crash,
// what decodes encodes to the same message again, and a stream gives the same frames however it is
// cut.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "handoff/codec.h"
#include "handoff/frame_buffer.h"

using namespace optcache;           // NOLINT(google-build-using-namespace)
using namespace optcache::handoff;  // NOLINT(google-build-using-namespace)

namespace {

void RoundTrip(FrameType type, ByteSpan body) {
  const auto message = DecodeClientMessage(type, body);
  if (!message) return;
  const FrameBytes frame = EncodeClientFrame(1, *message);
  const auto again = DecodeClientMessage(type, ByteSpan(frame).subspan(sizeof(FrameHeader)));
  CHECK(again.has_value() && *again == *message);
}

using Frames = std::vector<std::pair<FrameType, std::vector<std::byte>>>;

Frames Cut(ByteSpan bytes, std::size_t step) {
  FrameBuffer buffer;
  Frames frames;
  while (!bytes.empty()) {
    const MutableByteSpan space = buffer.Prepare();
    const std::size_t n = std::min({space.size(), bytes.size(), step});
    std::memcpy(space.data(), bytes.data(), n);
    buffer.Commit(n);
    bytes = bytes.subspan(n);
    while (true) {
      const auto frame = buffer.Next();
      if (!frame) return frames;
      if (!frame->has_value()) break;
      RoundTrip((*frame)->type, (*frame)->body);
      frames.emplace_back((*frame)->type,
                          std::vector<std::byte>((*frame)->body.begin(), (*frame)->body.end()));
    }
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes = std::as_bytes(std::span(data, size));
  for (std::uint8_t type = 0; type < 13; ++type) {
    RoundTrip(static_cast<FrameType>(type), bytes);
  }
  CHECK(Cut(bytes, bytes.size()) == Cut(bytes, 7));
  return 0;
}
