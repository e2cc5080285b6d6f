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
#include "plan/plan.h"
#include "wire/messages.h"

namespace optcache::node {

// One pass of one version, with the members behind its node indices.
struct DerivedPass {
  std::shared_ptr<const plan::PassPlan> plan;
  std::shared_ptr<const std::vector<wire::MemberId>> members;
  Position stops_at = plan::kWholePass;  // the pass is taken to end here
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

  // `stream` has begun `pass` somewhere: what its plan foretells counts from now on.
  void OnPassBegun(StreamId stream, PassNumber pass);

  // What the plans foretold for the passes that have begun since the node started, all nodes
  // together.
  struct Foretold {
    std::uint64_t accesses = 0;
    std::uint64_t store_reads = 0;
    ByteCount store_bytes = 0;
    ByteCount moved_bytes = 0;

    Foretold& operator+=(const Foretold& other);
  };
  Foretold foretold() const;
  // Of the newest pass: the share of its reads that memory serves.
  double hit_ratio() const { return hit_ratio_; }

 private:
  std::map<std::pair<StreamId, PassNumber>, std::vector<DerivedPass>> passes_;
  std::map<StreamId, std::map<PassNumber, Foretold>> forecasts_;  // of passes that may yet change
  std::map<StreamId, PassNumber> begun_;                          // the latest begun
  Foretold past_;                                                 // of the passes before those
  double hit_ratio_ = 0;
};

}  // namespace optcache::node
