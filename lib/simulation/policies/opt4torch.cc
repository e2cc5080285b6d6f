#include "simulation/policies/opt4torch.h"

#include <queue>
#include <utility>

#include "base/check.h"

namespace optcache::plan {
namespace {

// A held sample by its next read; ordered by that alone.
struct HeapEntry {
  std::uint32_t next = 0;
  SampleId sample = 0;
  friend bool operator<(const HeapEntry& a, const HeapEntry& b) { return a.next < b.next; }
};

class Opt4TorchPlanner {
 public:
  Opt4TorchPlanner(const Future& future, std::uint32_t sample_count, std::size_t slots)
      : future_(future), slots_(slots), next_of_held_(sample_count, kNoRead) {}

  std::vector<Opt4TorchStep> Run() {
    std::vector<Opt4TorchStep> steps(future_.samples.size());
    for (std::size_t t = 0; t < steps.size(); ++t)
      Decide(future_.samples[t], future_.next[t], steps[t]);
    return steps;
  }

 private:
  void Decide(SampleId sample, std::uint32_t next, Opt4TorchStep& step) {
    if (next_of_held_[sample] != kNoRead) {
      if (next == kNoRead) {
        Drop(sample);
        step.release = sample;
      } else {
        Hold(sample, next);
      }
      return;
    }
    if (next == kNoRead) return;
    if (held_ == slots_) {
      const HeapEntry last = PopLast();
      if (last.sample != kNoSample && next < last.next) {
        Drop(last.sample);
        step.victim = last.sample;
      } else if (last.sample != kNoSample) {
        step.should_cache = 0;  // and `last` stays held, without an entry in the heap
      }
    }
    if (held_ == slots_ || step.should_cache == 0) return;
    step.should_cache = 1;
    ++held_;
    Hold(sample, next);
  }

  void Hold(SampleId sample, std::uint32_t next) {
    next_of_held_[sample] = next;
    heap_.push({.next = next, .sample = sample});
  }
  void Drop(SampleId sample) {
    next_of_held_[sample] = kNoRead;
    --held_;
  }
  // Takes entries out until one is not stale; kNoSample if there is none.
  HeapEntry PopLast() {
    while (!heap_.empty()) {
      const HeapEntry top = heap_.top();
      heap_.pop();
      if (next_of_held_[top.sample] == top.next) return top;
    }
    return {.next = kNoRead, .sample = kNoSample};
  }

  const Future& future_;
  std::size_t slots_;
  std::size_t held_ = 0;
  std::vector<std::uint32_t> next_of_held_;  // by sample; kNoRead: not held
  std::priority_queue<HeapEntry> heap_;
};

class Opt4Torch final : public Policy {
 public:
  Opt4Torch(std::span<const Opt4TorchStep> steps, std::uint32_t sample_count, std::size_t slots,
            Opt4TorchRuntime runtime)
      : steps_(steps),
        least_(runtime == Opt4TorchRuntime::kShared ? -1 : 1),
        free_slots_(slots),
        held_(sample_count) {}

  bool Read(SampleId sample) override {
    CHECK(now_ < steps_.size());
    const Opt4TorchStep& step = steps_[now_++];
    if (Holds(sample)) {
      Free(step.release);
      return true;
    }
    if (step.should_cache != 0 && step.should_cache >= least_) {
      Free(step.victim);
      if (free_slots_ > 0) {
        --free_slots_;
        held_[sample] = 1;
      }
    }
    if (step.release != sample) Free(step.release);
    return false;
  }
  bool Holds(SampleId sample) const override { return held_[sample] != 0; }

 private:
  void Free(SampleId sample) {
    if (sample != kNoSample && std::exchange(held_[sample], std::uint8_t{0}) != 0) ++free_slots_;
  }

  std::span<const Opt4TorchStep> steps_;
  std::int8_t least_;  // of should_cache, for a read to be cached
  std::size_t now_ = 0;
  std::size_t free_slots_;
  std::vector<std::uint8_t> held_;
};

}  // namespace

std::vector<Opt4TorchStep> PlanAsOpt4Torch(const Future& future, std::uint32_t sample_count,
                                           std::size_t slots) {
  CHECK(slots > 0);
  return Opt4TorchPlanner(future, sample_count, slots).Run();
}

std::unique_ptr<Policy> RunOpt4Torch(std::span<const Opt4TorchStep> steps,
                                     std::uint32_t sample_count, std::size_t slots,
                                     Opt4TorchRuntime runtime) {
  return std::make_unique<Opt4Torch>(steps, sample_count, slots, runtime);
}

}  // namespace optcache::plan
