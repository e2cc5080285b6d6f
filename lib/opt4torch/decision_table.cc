// Fills a decision table by MIN with bypass, and replays a table as a runtime does.
//
// The idea: a held sample is named by its next read, as in belady.h, and the one to drop is the one
// with the largest name. A row can name one victim, and one sample to release. If all samples have
// one size, that is enough. If sizes differ, a sample may displace several: the others are released
// in earlier rows that release nothing yet, each after its sample's last read. If there are no such
// rows, the sample is not kept, and everything is as before (TakeBack).
//
// Invariant: `by_next_read_` has exactly the next reads of the samples on the shelf. TableReplay
// knows nothing but the table, so it also checks what the planner made.

#include "opt4torch/decision_table.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/check.h"
#include "plan/bitmap_tree.h"
#include "simulation/policies/shelf.h"

namespace optcache::plan {
namespace {

constexpr std::uint64_t kReadsBetweenProgress = 1U << 16U;

void Report(const ReadProgress& progress, std::uint64_t done) {
  if (progress && done % kReadsBetweenProgress == 0) progress(done);
}

// Held samples are filed by their next read. Where sizes differ, the rows whose release is not
// taken are kept on a stack, the latest on top: a sample that must go before its row's victim does
// goes in such a row, after its own last read.
class DecisionPlanner {
 public:
  DecisionPlanner(const Future& future, const Room& room)
      : future_(future),
        sizes_differ_(!room.sizes.equal()),
        shelf_(room),
        by_next_read_(static_cast<std::uint32_t>(future.samples.size())),
        last_read_(sizes_differ_ ? room.sizes.count() : 0),
        steps_(future.samples.size()) {}

  std::vector<Opt4TorchStep> Run(const ReadProgress& progress) {
    for (std::uint32_t row = 0; row < steps_.size(); ++row) {
      Decide(row);
      Report(progress, row);
    }
    return std::move(steps_);
  }

 private:
  void Decide(std::uint32_t row) {
    const SampleId sample = future_.samples[row];
    const std::uint32_t next = future_.next[row];
    Opt4TorchStep& step = steps_[row];
    if (shelf_.Holds(sample)) {
      by_next_read_.Erase(row);
      if (next == kNoRead) {
        shelf_.Remove(sample);
        step.release = sample;
      } else {
        by_next_read_.Insert(next);
      }
    } else if (next != kNoRead && MakeRoom(row, sample, next)) {
      step.should_cache = 1;
      shelf_.Add(sample);
      by_next_read_.Insert(next);
    } else {
      step.should_cache = 0;
    }
    if (!sizes_differ_) return;
    last_read_[sample] = row;
    if (step.release == kNoSample) free_rows_.push_back(row);
  }

  // Drops what is used later than `next`, in rows that can say so, until `sample` fits; or nothing.
  bool MakeRoom(std::uint32_t row, SampleId sample, std::uint32_t next) {
    if (!shelf_.CanEverFit(sample)) return false;
    going_.clear();
    while (!shelf_.Fits(sample)) {
      if (by_next_read_.empty() || by_next_read_.Max() < next) {
        TakeBack();
        return false;
      }
      const SampleId last = future_.samples[by_next_read_.Max()];
      going_.emplace_back(by_next_read_.Max(), last);
      by_next_read_.Erase(by_next_read_.Max());
      shelf_.Remove(last);
    }
    if (SayWhoGoes(row)) return true;
    TakeBack();
    return false;
  }

  void TakeBack() {
    for (const auto& [next, sample] : going_) {
      by_next_read_.Insert(next);
      shelf_.Add(sample);
    }
  }

  // The row that was read most recently has the fewest rows to go in, and so is the victim.
  bool SayWhoGoes(std::uint32_t row) {
    if (going_.empty()) return true;
    if (going_.size() > 1) {
      std::ranges::sort(going_, std::ranges::greater{},
                        [&](const auto& item) { return last_read_[item.second]; });
      if (free_rows_.size() < going_.size() - 1) return false;
      for (std::size_t i = 1; i < going_.size(); ++i) {
        if (free_rows_[free_rows_.size() - i] <= last_read_[going_[i].second]) return false;
      }
      for (std::size_t i = 1; i < going_.size(); ++i) {
        steps_[free_rows_.back()].release = going_[i].second;
        free_rows_.pop_back();
      }
    }
    steps_[row].victim = going_.front().second;
    return true;
  }

  const Future& future_;
  bool sizes_differ_;
  Shelf shelf_;
  BitmapTree by_next_read_;
  std::vector<std::uint32_t> last_read_;                     // by sample, if sizes differ
  std::vector<std::uint32_t> free_rows_;                     // ascending, if sizes differ
  std::vector<std::pair<std::uint32_t, SampleId>> going_{};  // next read, sample
  std::vector<Opt4TorchStep> steps_;
};

class TableReplay {
 public:
  TableReplay(const PlanFile& plan, Opt4TorchRuntime runtime, const Sizes& sizes)
      : plan_(plan), shared_(runtime == Opt4TorchRuntime::kShared), shelf_({sizes, ~0ULL}) {}

  Result<TableFigures> Run(const ReadProgress& progress) {
    figures_.reads = plan_.reads.size();
    for (std::size_t row = 0; row < plan_.reads.size(); ++row) {
      Read(row);
      if (figures_.most_held > plan_.maxsize) return TooMany(row);
      Report(progress, row);
    }
    return figures_;
  }

 private:
  void Read(std::size_t row) {
    const SampleId sample = plan_.reads[row];
    const Opt4TorchStep& step = plan_.steps[row];
    const std::size_t tenth = row * 10 / plan_.reads.size();
    ++figures_.reads_by_tenth[tenth];
    if (shelf_.Holds(sample)) {
      ++figures_.hits;
      ++figures_.hits_by_tenth[tenth];
      figures_.hit_bytes += shelf_.SizeOf(sample);
      Drop(step.release);
      return;
    }
    if (step.should_cache == 1 || (shared_ && step.should_cache == -1)) {
      Drop(step.victim);
      if (!shared_ || held_ < plan_.maxsize) Keep(sample);
    }
    if (!shared_ || step.release != sample) Drop(step.release);
  }

  void Keep(SampleId sample) {
    shelf_.Add(sample);
    figures_.most_held = std::max(figures_.most_held, ++held_);
    figures_.most_bytes = std::max(figures_.most_bytes, shelf_.used());
  }
  void Drop(SampleId sample) {
    if (sample == kNoSample || !shelf_.Holds(sample)) return;
    shelf_.Remove(sample);
    --held_;
    ++figures_.dropped;
  }

  std::unexpected<Status> TooMany(std::size_t row) const {
    return Error(Code::kInvalidArgument,
                 "decision_table, row " + std::to_string(row) + ": " +
                     std::to_string(figures_.most_held) +
                     " samples are held here, config says that maxsize is " +
                     std::to_string(plan_.maxsize) + "; generate the plan again");
  }

  const PlanFile& plan_;
  bool shared_;
  Shelf shelf_;
  std::uint64_t held_ = 0;
  TableFigures figures_;
};

}  // namespace

std::vector<Opt4TorchStep> PlanDecisions(const Future& future, const Room& room,
                                         const ReadProgress& progress) {
  return DecisionPlanner(future, room).Run(progress);
}

Result<TableFigures> ReplayTable(const PlanFile& plan, Opt4TorchRuntime runtime, const Sizes& sizes,
                                 const ReadProgress& progress) {
  CHECK(sizes.count() == plan.dataset_size && plan.steps.size() == plan.reads.size());
  return TableReplay(plan, runtime, sizes).Run(progress);
}

}  // namespace optcache::plan
