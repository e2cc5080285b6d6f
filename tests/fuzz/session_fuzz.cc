// A connection from hostile bytes. The first byte chooses the side, the second seeds the cuts in
// which the rest arrives; some payloads are taken and some refused.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "wire/frame_reader.h"
#include "wire/session.h"

using namespace optcache;  // NOLINT(google-build-using-namespace)

namespace {

constexpr ByteCount kMaxPayload = 1_MiB;

class Connection {
 public:
  explicit Connection(wire::Session session) : session_(session) {}

  // False when the connection has ended.
  bool Receive(ByteSpan bytes) {
    while (!bytes.empty()) {
      std::size_t taken = 0;
      for (const MutableByteSpan& part : reader_.Space()) {
        const std::size_t n = std::min(bytes.size() - taken, part.size());
        if (n > 0) std::memcpy(part.data(), bytes.data() + taken, n);
        taken += n;
      }
      reader_.Commit(taken);
      bytes = bytes.subspan(taken);
      if (!Drain()) return false;
    }
    return true;
  }

 private:
  bool Drain() {
    for (;;) {
      auto event = reader_.Next();
      if (!event) return false;
      if (std::holds_alternative<wire::NeedMore>(*event)) return true;
      const auto* frame = std::get_if<wire::Frame>(&*event);
      if (frame == nullptr) continue;
      const auto verdict = session_.OnMessage(frame->message);
      if (!verdict || *verdict == wire::Session::Event::kRefusal) return false;
      if (!wire::CarriesPayload(frame->message)) continue;
      // Allocated before the bytes come, as a real receiver does within its limit.
      sink_.resize(frame->request_id % 3 == 0 ? 0 : frame->payload_length);
      reader_.SetSink(sink_);
    }
  }

  wire::FrameReader reader_{{.payload_bytes = kMaxPayload}};
  wire::Session session_;
  std::vector<std::byte> sink_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  Random cuts(data[1]);
  const auto own_role = data[0] % 3 == 1 ? wire::Role::kSidecar : wire::Role::kNode;
  Connection connection(data[0] % 3 == 0 ? wire::Session::Accepting()
                                         : wire::Session::Dialing(own_role));
  ByteSpan rest = std::as_bytes(std::span(data + 2, size - 2));
  while (!rest.empty()) {
    const std::size_t n = std::min<std::size_t>(rest.size(), 1 + cuts.Below(300));
    if (!connection.Receive(rest.first(n))) return 0;
    rest = rest.subspan(n);
  }
  return 0;
}
