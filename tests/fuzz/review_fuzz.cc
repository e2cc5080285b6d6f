// An AdmissionReview from anybody: an answer, and a patch that applies and is not asked for twice.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "operator/webhook/review.h"
#include "support/fake_datasets.h"

namespace optcache::webhook {
namespace {

void Try(std::string_view body) {
  static const FakeDatasets datasets = FakeDatasets::OfCorpus();
  const auto review = ParseReview(body);
  if (!review) return;
  const InjectionSettings settings{.version = "1", .ordinary_sidecars = body.size() % 2 == 1};
  const Injection injection = DecideReview(*review, datasets, settings);
  CHECK(nlohmann::json::accept(WriteReview(*review, injection)));
  if (injection.outcome != Outcome::kInjected) {
    CHECK(injection.patch.empty());
    return;
  }
  Review again = *review;
  again.pod = review->pod.patch(injection.patch);
  CHECK(DecideReview(again, datasets, settings).patch.empty());
}

}  // namespace
}  // namespace optcache::webhook

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  optcache::webhook::Try({reinterpret_cast<const char*>(data), size});
  return 0;
}
