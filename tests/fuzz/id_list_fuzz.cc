// Lists of ids from outside: what is read is written back as equal bytes, and names no sample that
// does not exist. The first four bytes are the number of samples.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "sampler/id_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace optcache;
  if (size < 4) return 0;
  std::uint32_t samples = 0;
  std::memcpy(&samples, data, 4);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 4, size - 4);
  const auto lists = sampler::ParseLists(bytes, samples);
  if (!lists) return 0;
  const auto order = sampler::PassOrder(*lists, samples);
  CHECK(order.has_value() || !sampler::CheckIds(*lists, samples).ok());
  if (!order) return 0;
  CHECK(order->size() == sampler::PassLength(*lists));
  for (const SampleId id : *order)
    CHECK(id < samples);
  if (lists->lengths.size() != 1) return 0;
  CHECK(sampler::EncodeList(*order, lists->bits) == bytes);
  const std::string_view twice[] = {bytes, bytes};
  const auto joined = sampler::JoinLists(twice, samples);
  CHECK(joined.has_value() && sampler::ParseLists(*joined, samples).has_value());
  return 0;
}
