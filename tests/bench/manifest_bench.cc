// What a manifest costs: bytes a sample in memory, and the time to build and to parse it. Samples
// have ImageNet-like paths, sizes and modification times. Prints JSON.
//
//   bench_manifest --samples 10000000
//
// With --output the manifest is written to a file, for other measurements, and its digest printed.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "base/files.h"
#include "base/random.h"
#include "bench/counted_heap.h"
#include "bench/cpu_timer.h"
#include "dataset/manifest_builder.h"

namespace optcache::dataset {
namespace {

constexpr std::uint32_t kClasses = 1000;
constexpr std::int64_t kModifiedNs = 1'300'000'000'000'000'000;

Manifest Build(std::uint32_t samples, bool digests) {
  std::vector<std::string> classes;
  for (std::uint32_t c = 0; c < kClasses; ++c)
    classes.push_back(fmt::format("n{:08}", 1'440'764 + c * 13'579));
  ManifestBuilder builder(Order::kImageFolder, classes);
  Random random(1);
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < samples; ++i) {
    const auto c = static_cast<ClassIndex>(std::uint64_t{i} * kClasses / samples);
    number += 1 + static_cast<std::uint32_t>(random.Below(20));
    const std::string path = fmt::format("{}/{}_{}.JPEG", classes[c], classes[c], number);
    const std::int64_t modified =
        kModifiedNs + static_cast<std::int64_t>(random.Below(1ULL << 56U));
    const Status added =
        builder.Add({.path = path,
                     .size = 20'000 + random.Below(180'000),
                     .class_index = c,
                     .validator = {.modified_ns = modified, .etag = {}},
                     .digest = digests ? std::optional(Sha256Of(AsBytes(path))) : std::nullopt});
    CHECK(added.ok());
  }
  return std::move(builder).Finish().value();
}

void Run(std::uint32_t samples) {
  const std::size_t before = bench::HeapBytes();
  bench::CpuTimer build;
  build.Start();
  std::string bytes(Build(samples, false).bytes());
  build.Stop();
  bytes.shrink_to_fit();

  bench::CpuTimer parse;
  parse.Start();
  const Manifest manifest = Manifest::Parse(std::move(bytes)).value();
  parse.Stop();
  const auto a_sample = static_cast<double>(bench::HeapBytes() - before) / samples;

  constexpr std::uint32_t kLookups = 1'000'000;
  Random random(2);
  bench::CpuTimer lookups;
  std::size_t path_bytes = 0;
  lookups.Start();
  for (std::uint32_t i = 0; i < kLookups; ++i)
    path_bytes += manifest.Path(static_cast<SampleId>(random.Below(samples))).size();
  lookups.Stop();
  CHECK(path_bytes > 0);
  fmt::print(R"({{"samples": {}, "bytes_a_sample": {:.2f}, "build_s": {:.3f}, "parse_s": {:.3f}, )"
             R"("path_ns": {:.1f}}})"
             "\n",
             samples, a_sample, build.seconds(), parse.seconds(), lookups.NanosecondsPer(kLookups));
}

void Write(std::uint32_t samples, bool digests, const std::string& file) {
  const Manifest manifest = Build(samples, digests);
  CHECK(WriteFileAtomically(file, manifest.bytes()).ok());
  fmt::print(R"({{"samples": {}, "bytes": {}, "digest": "{}"}})"
             "\n",
             samples, manifest.bytes().size(), ToHex(manifest.digest()));
}

}  // namespace
}  // namespace optcache::dataset

int main(int argc, char** argv) {
  std::uint32_t samples = 10'000'000;
  CLI::App app("What a manifest costs");
  app.add_option("--samples", samples)->check(CLI::PositiveNumber)->capture_default_str();
  bool digests = false;
  std::string output;
  app.add_option("--output", output, "Only write the manifest there");
  app.add_flag("--digests", digests, "In that file: with the samples' digests");
  CLI11_PARSE(app, argc, argv);
  if (output.empty()) {
    optcache::dataset::Run(samples);
  } else {
    optcache::dataset::Write(samples, digests, output);
  }
  return 0;
}
