#pragma once

// The plans in force: what each derived pass says, by (stream, pass), the newest version first.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "cache-node/verdict.h"
#include "plan/pass_plan.h"
#include "wire/messages.h"

namespace optcache::node {

// One pass of one version, with the members behind its node indices.
struct DerivedPass {
  std::shared_ptr<const plan::PassPlan> plan;
  std::shared_ptr<const std::vector<wire::MemberId>> members;
};

// Not thread-safe: the event loop owns it.
class PlanBook final : public Verdicts {
 public:
  // Later ones go before earlier ones where they overlap.
  void Add(DerivedPass pass);
  // No read of these passes can come any more.
  void Forget(StreamId stream, PassNumber below);
  void ForgetStream(StreamId stream);

  std::optional<Verdict> Find(const ReadKey& key) const override;

  // How far `stream` is planned: the first pass and position that no plan covers, from `from` on.
  bool CoversPass(StreamId stream, PassNumber pass) const;

  // What the plans foretold since the node started, all nodes together.
  struct Foretold {
    std::uint64_t accesses = 0;
    std::uint64_t store_reads = 0;
    ByteCount store_bytes = 0;
    ByteCount moved_bytes = 0;
    double hit_ratio = 0;      // of the newest whole pass
    std::uint64_t digest = 0;  // of the newest pass
  };
  // Of the passes up to `pass` of each stream.
  const Foretold& foretold() const { return foretold_; }

  struct PassForecast {
    StreamId stream = 0;
    PassNumber pass = 0;
    plan::PlanStats stats;
    std::uint64_t digest = 0;
  };
  // Of the passes still in the book, in order.
  std::vector<PassForecast> Forecasts() const;

 private:
  std::map<std::pair<StreamId, PassNumber>, std::vector<DerivedPass>> passes_;
  Foretold foretold_;
};

}  // namespace optcache::node
