// Any JSON as a resource of each kind: parsed or refused with the field that is wrong, never more.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/cache_plan.h"
#include "api/dataset.h"
#include "api/warmup.h"

namespace optcache::api {
namespace {

template <typename Spec>
void CheckRefusal(const Result<Spec>& spec) {
  if (!spec && spec.error().message().empty()) std::abort();
}

void Check(const nlohmann::json& object) {
  const auto dataset = ParseDatasetSpec(object);
  CheckRefusal(dataset);
  constexpr ByteCount kBytes = 1'000'000;
  if (dataset && dataset->GuaranteedOf(kBytes) > dataset->capacity.Of(kBytes)) std::abort();
  CheckRefusal(ParseWarmupSpec(object));
  const auto plan = ParseCachePlanSpec(object);
  CheckRefusal(plan);
  if (!plan) return;
  const auto again = ParseRevisionContent(RevisionContent(*plan));
  if (!again || again->jobs != plan->jobs || again->retention != plan->retention) std::abort();
}

}  // namespace
}  // namespace optcache::api

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_discarded()) optcache::api::Check(object);
  return 0;
}
