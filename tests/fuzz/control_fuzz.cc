// Any text as each message of the control API: what is parsed is written and read back the same.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "coordination/codec.h"
#include "coordination/plan_base.h"
#include "coordination/sample_set.h"
#include "coordination/status.h"

namespace {

namespace coordination = optcache::coordination;

template <typename Parse>
void RoundTrip(std::string_view text, Parse parse) {
  const auto value = parse(text);
  if (!value) return;
  const auto again = parse(coordination::ToJson(*value));
  if (!again || !(*again == *value)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  RoundTrip(text, coordination::ParseReport);
  RoundTrip(text, coordination::ParseReportAnswer);
  RoundTrip(text, coordination::ParseInventory);
  RoundTrip(text, coordination::ParseDesiredState);
  RoundTrip(text, coordination::ParseClusterStatus);
  if (const auto base = coordination::DecodePlanBase(text)) {
    if (coordination::EncodePlanBase(*base) != text) std::abort();
  }
  if (const auto set = coordination::DecodeSampleSet(text)) {
    if (coordination::EncodeSampleSet(*set) != text) std::abort();
  }
  return 0;
}
