// Somebody on the path of a sealed connection. The input says what it does to a stream of good
// frames: leave, change, repeat, hold back, drop, or put in bytes of its own. Whatever that is, the
// reader takes a beginning of what was sent, and nothing else.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "wire/frame_reader.h"

using namespace optcache;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::uint32_t kFrames = 12;

// No cryptography, but nothing that comes out right by chance.
class MixMac final : public wire::FrameMac {
 public:
  wire::Tag Compute(std::uint64_t number, ByteSpan head) override {
    std::uint64_t low = Random::Mix(number + 1);
    std::uint64_t high = Random::Mix(low);
    for (const std::byte byte : head) {
      low = Random::Mix(low ^ std::to_integer<std::uint64_t>(byte));
      high = Random::Mix(high + low);
    }
    wire::Tag tag = {};
    std::memcpy(tag.data(), &low, sizeof(low));
    std::memcpy(tag.data() + sizeof(low), &high, sizeof(high));
    return tag;
  }
};

wire::FrameSeal Seal() {
  return wire::FrameSeal(std::make_unique<MixMac>());
}

// The instructions, one byte after the other; zeros when they have run out.
class Script {
 public:
  explicit Script(ByteSpan bytes) : rest_(bytes) {}
  std::uint8_t Next() {
    if (rest_.empty()) return 0;
    const auto value = std::to_integer<std::uint8_t>(rest_.front());
    rest_ = rest_.subspan(1);
    return value;
  }

 private:
  ByteSpan rest_;
};

std::vector<std::byte> Tampered(Script& script) {
  wire::FrameSeal seal = Seal();
  std::vector<std::byte> stream;
  std::vector<std::byte> held;
  const auto append = [&stream](const std::vector<std::byte>& bytes) {
    stream.insert(stream.end(), bytes.begin(), bytes.end());
  };
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    std::vector<std::byte> frame;
    CHECK(wire::AppendFrame(i, wire::StoreReply{.dataset = i, .id = i}, 0, frame, &seal).ok());
    switch (script.Next() % 8) {
      case 1:
        frame[script.Next() % frame.size()] ^= static_cast<std::byte>(script.Next());
        break;
      case 2:
        append(frame);
        break;
      case 3:
        std::swap(frame, held);
        break;
      case 4:
        frame.clear();
        break;
      case 5:
        frame.resize(script.Next() % frame.size());
        break;
      case 6:
        for (std::uint8_t left = script.Next() % 64; left > 0; --left)
          stream.push_back(static_cast<std::byte>(script.Next()));
        break;
      default:
        break;
    }
    append(frame);
  }
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script(std::as_bytes(std::span(data, size)));
  const std::vector<std::byte> stream = Tampered(script);
  wire::FrameReader reader;
  reader.ExpectSealed(Seal());
  std::uint32_t taken = 0;
  ByteSpan rest = stream;
  while (!rest.empty()) {
    const MutableByteSpan space = reader.Space()[1];
    const std::size_t n = std::min({rest.size(), space.size(), std::size_t{1} + script.Next()});
    std::memcpy(space.data(), rest.data(), n);
    reader.Commit(n);
    rest = rest.subspan(n);
    for (auto event = reader.Next();; event = reader.Next()) {
      if (!event) return 0;
      const auto* frame = std::get_if<wire::Frame>(&*event);
      if (frame == nullptr) break;
      CHECK(frame->request_id == taken);
      CHECK(frame->message == wire::Message(wire::StoreReply{.dataset = taken, .id = taken}));
      ++taken;
    }
  }
  return 0;
}
