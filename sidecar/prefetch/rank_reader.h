#pragma once

// One rank of one stream: its sampler, the pass it reads and the one that will follow.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "sampler/recipe.h"
#include "sidecar/fetch/read_pace.h"
#include "sidecar/ports/ports.h"
#include "sidecar/prefetch/pass.h"
#include "wire/messages.h"

namespace optcache::sidecar {

using ReaderId = std::uint32_t;  // 0: none

// When the next pass is predicted: its order takes memory and is of no use before.
enum class PredictWhen {
  kHalfStaged,  // the present pass is
  kBegun,       // the present pass has, and its order is known
};

// Who reads what, fixed from attach on.
struct Attachment {
  const DatasetPort* dataset = nullptr;
  std::string dataset_name;  // "namespace/name"
  std::string stream_name;   // "namespace/owner/dataset/loader"
  std::string asked_name;    // the same, with the loader's name that the process said
  StreamId stream = 0;
  std::uint32_t incarnation = 0;
  sampler::Recipe recipe;
  Rank rank = 0;
  bool known = true;         // false: the order cannot be replayed
  bool traced = false;       // ... but the training process hands over its lists
  std::uint32_t behind = 0;  // how far workers ask out of order, in samples
  // Each pass reads this many ids of the rank's list, from the front; 0: that is not known.
  std::uint64_t pass_reads = 0;
  std::string job;           // the same in all its processes; empty: nobody knows
  std::int32_t process = 0;  // its id; 0: it cannot be seen from here
};

// Not thread-safe.
class RankReader {
 public:
  static constexpr PassNumber kTracesAhead = 1;

  RankReader(Attachment attachment, ClientId owner)
      : attachment_(std::move(attachment)), owner_(owner), usual_end_(attachment_.pass_reads) {}

  const Attachment& attachment() const { return attachment_; }
  ClientId owner() const { return owner_; }
  bool ended() const { return ended_; }
  void End();
  // The rank has attached again, perhaps with another sampler. What it reads stays if it had not
  // ended and the sampler is the same.
  void Reopen(Attachment attachment, ClientId owner);
  // The number of the next pass that nobody has begun. After an end it is 0 again, as at the other
  // sidecars to which the ranks of the next job may attach.
  PassNumber first_pass() const { return first_pass_; }

  // The stream is over after `passes`, counted from that one or from first_pass(); 0: nobody knows.
  void ExpectPasses(std::uint32_t passes, std::optional<PassNumber> from) {
    end_ = passes == 0 ? 0 : from.value_or(first_pass_) + passes;
  }

  // This many passes in all; 0: nobody knows.
  std::uint32_t passes() const { return end_; }

  // Samples that are staged now, for the present pass and the next.
  std::size_t staged() const {
    return (current_ ? current_->staged() : 0) + (next_ ? next_->staged() : 0);
  }
  // Nothing new is staged until it is called with false.
  void HoldStaging(bool hold) { staging_held_ = hold; }
  bool staging_held() const { return staging_held_; }
  // There is more to stage now, and no room for it in memory.
  void SetLacksRoom(bool lacks) { lacks_room_ = lacks; }
  bool lacks_room() const { return lacks_room_; }

  // A pass begins and voids what was left of the one before. If it is the one predicted, what was
  // staged for it stays.
  void Begin(const PassSpan& span, std::optional<std::uint32_t> crc);
  // The pass that follows the present one begins in `next()` as soon as `when` says: the same part
  // of the list, an epoch on by as much as the last time. True if it has just
  // been predicted, so that its order is wanted.
  bool Predict(PredictWhen when = PredictWhen::kHalfStaged);

  // This many ids of the list are read in the present pass and those that follow, as far as is
  // known: because the rank has said so, or two passes in a row ended there. 0: passes end with the
  // list. A pass that goes on beyond ends the belief.
  std::uint64_t pass_reads() const;

  // The present pass; null before the first.
  Pass* current() const { return current_.get(); }
  Pass* next() const { return next_.get(); }
  // The present or the next pass, whichever has that number; null if none.
  Pass* Find(PassNumber number) const;
  // The pass with exactly that span; null if it is over or was never meant.
  Pass* Find(const PassSpan& span) const;

  // The pass whose order is wanted and not here, but can be made, the present one first; null if
  // none.
  Pass* WithoutOrder() const;

  // A part of the list of `pass`, as it is handed over: of `length` ids in all, or of a list that
  // grows with the pass (0). Says what is wrong with it.
  Status TakeTrace(PassNumber pass, std::uint64_t first, std::uint64_t length,
                   std::span<const SampleId> ids);
  // The whole list of that pass; null if it has not come.
  std::shared_ptr<const std::vector<SampleId>> Trace(PassNumber pass) const;
  // Those whose list has begun to come.
  std::vector<PassNumber> TracedPasses() const;

  // Does the order agree with what the training process said of the present pass? Distrusts it and
  // says what is wrong, if not; nothing if it agrees or nothing can be compared yet.
  std::optional<std::string> Verify();

  wire::StreamAttach AttachMessage() const;
  // What the one above cannot say.
  std::optional<wire::StreamOrder> OrderMessage() const;
  wire::StreamPassEnd PassEndMessage() const;
  wire::StreamProgress ProgressMessage() const;
  // A trainer asks for what stands at that index of one of the two passes.
  void OnAsked(const Pass& pass, std::uint64_t index, MonotonicTime now) {
    pace_->OnAsked(PlaceOf(pass, index) + 1, now);
  }
  ReadDue DueOf(const Pass& pass, std::uint64_t index) const {
    return {.pace = pace_, .place = PlaceOf(pass, index)};
  }
  void AddWait(Duration wait) { wait_ += wait; }
  Position PositionOf(std::uint64_t index) const {
    return index * attachment_.recipe.world + attachment_.rank;
  }

 private:
  void LearnFrom(const Pass& ended);
  void LimitReads(Pass& pass) const;
  std::uint64_t Slack(const PassSpan& span) const;
  ReadPace::Place PlaceOf(const Pass& pass, std::uint64_t index) const;

  Attachment attachment_;
  ClientId owner_;
  bool ended_ = false;
  bool staging_held_ = false;
  bool lacks_room_ = false;
  PassNumber first_pass_ = 0;
  PassNumber end_ = 0;  // the stream is over before this pass; 0: nobody knows
  struct HandedOver {
    std::uint64_t length = 0;
    std::shared_ptr<std::vector<SampleId>> ids;  // shared, and left alone, once it is whole
  };
  std::map<PassNumber, HandedOver> traces_;  // of the present pass and of kTracesAhead after it
  std::unique_ptr<Pass> current_;
  std::unique_ptr<Pass> next_;
  std::uint64_t usual_end_ = 0;       // index at which passes are taken to end; 0: with the list
  std::uint64_t last_end_ = 0;        // where the pass before ended, if early; else 0
  std::optional<std::uint32_t> crc_;  // of the present pass, as the training process computed it
  std::uint64_t epoch_step_ = 1;      // wraps around: epochs may count down
  Duration wait_{};                   // of the trainer, in the present pass
  std::shared_ptr<ReadPace> pace_ = std::make_shared<ReadPace>();  // const to all others
  ReadPace::Place place_ = 0;  // of the present pass's first read
};

}  // namespace optcache::sidecar
