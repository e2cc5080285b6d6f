// What counting costs a node: the processor time of its numbers for one sample that it hands out,
// by dataset and by pass, with the streams in turns. Prints JSON, a line a case.
//
//   bench_metrics --samples 20000000 --streams 8

#include <algorithm>
#include <cstdint>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/check.h"
#include "bench/cpu_timer.h"
#include "cache-node/retention/counters.h"
#include "cache-node/retention/pass_counts.h"

namespace optcache::bench {
namespace {

struct Options {
  std::uint64_t samples = 20'000'000;
  std::uint32_t streams = 8;
  std::uint64_t pass = 1'000'000;  // reads of a stream
};

// As DatasetCache counts a hit here. Each stream reads `batch` samples, then the next does.
double CountNanoseconds(const Options& options, std::uint64_t batch) {
  constexpr ByteCount kSize = 110'000;
  node::Counters counters;
  node::PassCounts passes;
  CpuTimer timer;
  timer.Start();
  for (std::uint64_t done = 0; done < options.samples; done += batch) {
    const std::uint64_t turn = done / batch;
    const std::uint64_t begin = turn / options.streams * batch;
    const StreamId stream{turn % options.streams + 1};
    for (std::uint64_t i = 0; i < batch; ++i) {
      const std::uint64_t position = begin + i;
      ++counters.hits_local;
      counters.hit_bytes_local += kSize;
      ++counters.predicted_local;
      counters.predicted_bytes_local += kSize;
      passes.OnHit({.stream = stream,
                    .pass = static_cast<PassNumber>(position / options.pass),
                    .position = position % options.pass});
    }
  }
  timer.Stop();
  CHECK(passes.passes().size() == std::min<std::uint64_t>(options.streams, counters.hits_local));
  return timer.NanosecondsPer(counters.hits_local);
}

int Run(int argc, char** argv) {
  CLI::App app("What counting costs a node");
  Options options;
  app.add_option("--samples", options.samples, "counted")->check(CLI::Range(1'000, 1'000'000'000));
  app.add_option("--streams", options.streams, "that read in turns")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, argc, argv);
  fmt::print("[");
  for (const std::uint64_t batch : {std::uint64_t{1}, std::uint64_t{64}}) {
    fmt::print("{}{{\"batch\": {}, \"ns\": {:.2f}}}", batch == 1 ? "" : ", ", batch,
               CountNanoseconds(options, batch));
  }
  fmt::print("]\n");
  return 0;
}

}  // namespace
}  // namespace optcache::bench

int main(int argc, char** argv) {
  return optcache::bench::Run(argc, argv);
}
