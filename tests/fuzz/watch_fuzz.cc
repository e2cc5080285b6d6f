// A watch's bytes from a hostile API server. The first two bytes seed the cuts in which the rest
// arrives; however it is cut, the same events come out.

#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "kube/watch_decoder.h"

using namespace optcache;  // NOLINT(google-build-using-namespace)

namespace {

constexpr ByteCount kMaxLine = 4096;

struct Outcome {
  std::vector<kube::DecodedEvent> events;
  Status status;
};

Outcome Decode(std::string_view bytes, Random* cuts) {
  kube::WatchDecoder decoder(kMaxLine);
  Outcome outcome;
  while (!bytes.empty()) {
    const std::size_t n = cuts == nullptr ? bytes.size() : 1 + cuts->Below(bytes.size());
    outcome.status = decoder.Feed(bytes.substr(0, n), outcome.events);
    if (!outcome.status.ok()) return outcome;
    bytes.remove_prefix(n);
  }
  outcome.status = decoder.Finish();
  return outcome;
}

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  Random cuts((static_cast<std::uint64_t>(data[0]) << 8U) | data[1]);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): text is bytes
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Outcome whole = Decode(bytes, nullptr);
  const Outcome cut = Decode(bytes, &cuts);
  Require(whole.status == cut.status && whole.events.size() == cut.events.size());
  for (const kube::DecodedEvent& event : whole.events) {
    if (const auto* watch = std::get_if<kube::WatchEvent>(&event)) {
      Require(watch->object.is_object());
      Require(watch->type == kube::WatchEventType::kBookmark ||
              !kube::KeyOf(watch->object).name.empty());
    } else {
      Require(!std::get<kube::ApiError>(event).status.ok());
    }
  }
  return 0;
}
