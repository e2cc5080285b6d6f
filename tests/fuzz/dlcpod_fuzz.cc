// Any text as jobs of DLCache: refused with its file's name, or converted to YAML whose last
// document is a Job.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cli/convert/dlcpod.h"

using namespace optcache;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto pods = config::ParseDlcPods(text, "fuzz.yaml");
  if (!pods) {
    CHECK(pods.error().message().starts_with("fuzz.yaml"));
    return 0;
  }
  for (const config::DlcPod& pod : *pods) {
    const auto documents = cli::ConvertDlcPod(pod, "");
    if (!documents) continue;
    CHECK(!documents->empty());
    CHECK(documents->back().json.find("\"kind\":\"Job\"") != std::string::npos);
    CHECK(cli::ToYaml(*documents).ends_with('\n'));
  }
  return 0;
}
