// What a second request for late reads is worth: the tail of read times with and without, and what
// it costs in requests. Prints JSON.
//
//   bench_hedge simulate --reads 200000         a store in virtual time, the same for every run
//   bench_hedge read --url http://127.0.0.1:8000/ --reads 6000 --extra 0.02
//                                               objects 0, 1, ... of a web server, all of --size

#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/mutex.h"
#include "storage/open_store.h"
#include "support/straggling_store.h"

namespace optcache::bench {
namespace {

using storage::StragglingReads;
using storage::StragglingStore;

struct ReadOptions {
  std::string url;
  std::size_t reads = 6000;
  std::size_t objects = 1000;
  ByteCount size = 50'000;
  unsigned at_a_time = 32;
  double extra = 0.02;
};

std::string Row(const StragglingReads& reads) {
  return fmt::format(
      R"({{"reads": {}, "requests": {}, "p50_ms": {:.3f}, "p99_ms": {:.3f}, "p99_9_ms": {:.3f}}})",
      reads.latencies_ms.size(), reads.requests, reads.Quantile(0.5), reads.Quantile(0.99),
      reads.Quantile(0.999));
}

void Simulate(std::size_t reads) {
  StragglingStore store = {.seed = 7, .reads = reads};
  const std::string hedged = Row(ReadAll(store));
  store.hedges.extra_share = 0;
  fmt::print("{{\"plain\": {}, \"hedged\": {}}}\n", Row(ReadAll(store)), hedged);
}

// Reads of one store, a number of them at a time, each begun when another has ended.
class Reader {
 public:
  Reader(storage::ObjectStore& store, const ReadOptions& options)
      : store_(store), options_(options), memory_(options.at_a_time) {
    for (auto& memory : memory_)
      memory.resize(options.size);
  }

  Status Run() {
    for (std::size_t place = 0; place < memory_.size(); ++place)
      Next(place);
    const MutexLock lock(mutex_);
    while (running_ > 0)
      changed_.WaitUntil(mutex_, SystemClock().Now() + std::chrono::seconds(10));
    std::ranges::sort(reads_.latencies_ms);
    return failure_;
  }

  StragglingReads reads() {
    const MutexLock lock(mutex_);
    return reads_;
  }

 private:
  void Next(std::size_t place) {
    std::size_t number = 0;
    {
      const MutexLock lock(mutex_);
      if (begun_ == options_.reads || !failure_.ok()) return;
      number = begun_++;
      ++running_;
    }
    const MonotonicTime began = SystemClock().Now();
    Status accepted =
        store_.Read({.object = std::to_string(number % options_.objects),
                     .destination = MutableByteSpan(memory_[place]),
                     .object_size = options_.size,
                     .validator = {},
                     .deadline = Deadline::After(SystemClock(), std::chrono::minutes(1))},
                    [this, place, began](const storage::ReadOutcome& outcome) {
                      End(outcome.status, SystemClock().Now() - began);
                      Next(place);
                    });
    if (!accepted.ok()) End(accepted, Duration::zero());
  }

  void End(const Status& status, Duration took) {
    const MutexLock lock(mutex_);
    --running_;
    reads_.latencies_ms.push_back(std::chrono::duration<double, std::milli>(took).count());
    if (failure_.ok()) failure_ = status;
    changed_.NotifyAll();
  }

  storage::ObjectStore& store_;
  const ReadOptions options_;
  std::vector<std::vector<std::byte>> memory_;
  Mutex mutex_;
  CondVar changed_;
  std::size_t begun_ GUARDED_BY(mutex_) = 0;
  std::size_t running_ GUARDED_BY(mutex_) = 0;
  Status failure_ GUARDED_BY(mutex_);
  StragglingReads reads_ GUARDED_BY(mutex_);
};

Status Read(const ReadOptions& options) {
  storage::OpenOptions open{.concurrent_reads_max = options.at_a_time};
  open.hedges.extra_share = options.extra;
  ASSIGN_OR_RETURN(const auto store, storage::OpenStore(options.url, open));
  Reader reader(*store, options);
  RETURN_IF_ERROR(reader.Run());
  StragglingReads reads = reader.reads();
  reads.requests = reads.latencies_ms.size();
  store->VisitCounters([&](MetricKind, std::string_view name, const MetricLabels&, double value) {
    if (name == "optcache_store_hedges_total") reads.requests += static_cast<std::size_t>(value);
  });
  fmt::print("{}\n", Row(reads));
  return OkStatus();
}

int Run(int argc, char** argv) {
  CLI::App app("What a second request for late reads is worth");
  app.require_subcommand(1);
  std::size_t simulated = 200'000;
  CLI::App* simulate = app.add_subcommand("simulate", "in virtual time");
  simulate->add_option("--reads", simulated)->check(CLI::Range(1'000, 100'000'000));
  ReadOptions options;
  CLI::App* read = app.add_subcommand("read", "of a web server");
  read->add_option("--url", options.url)->required();
  read->add_option("--reads", options.reads)->check(CLI::Range(1, 100'000'000));
  read->add_option("--objects", options.objects)->check(CLI::Range(1, 100'000'000));
  read->add_option("--size", options.size)->check(CLI::Range(1, 1'000'000'000));
  read->add_option("--at-a-time", options.at_a_time)->check(CLI::Range(1, 1024));
  read->add_option("--extra", options.extra, "hedges for each read")->check(CLI::Range(0.0, 1.0));
  CLI11_PARSE(app, argc, argv);
  if (simulate->parsed()) {
    Simulate(simulated);
    return 0;
  }
  if (const Status done = Read(options); !done.ok()) {
    fmt::print(stderr, "{}\n", done.ToString());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace optcache::bench

int main(int argc, char** argv) {
  return optcache::bench::Run(argc, argv);
}
