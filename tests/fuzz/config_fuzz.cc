// Any text as a configuration: parsed or refused, never more.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/configuration.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto configuration = optcache::config::ParseConfiguration(text, "fuzz.yaml");
  if (!configuration) {
    if (!configuration.error().message().starts_with("fuzz.yaml")) std::abort();
    return 0;
  }
  for (const optcache::config::Dataset& dataset : configuration->datasets) {
    if (dataset.name.empty() || optcache::api::AddressOf(dataset.spec.source).empty()) std::abort();
    if (configuration->PlanOf(dataset).spec.dataset != dataset.name) std::abort();
  }
  return 0;
}
