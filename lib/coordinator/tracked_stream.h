#pragma once

// What the coordinator knows of one generation of a stream from its ranks' reports, and what it
// makes of it: whether all ranks are there, which epoch each pass is, how far and how fast the
// stream is.

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordination/state.h"
#include "coordination/stream_recipe.h"
#include "coordinator/stream_ranks.h"
#include "coordinator/trace_registry.h"

namespace optcache::coordination {

// A value; time is an argument.
class TrackedStream {
 public:
  // `generation`: StreamState::generation.
  TrackedStream(const StreamReport& first, Version generation, MonotonicTime now);

  StreamId id() const { return id_; }
  const std::string& name() const { return name_; }
  std::uint32_t incarnation() const { return incarnation_; }
  Version generation() const { return generation_; }
  std::uint32_t world() const { return recipe_.world; }
  // When a rank was last heard of.
  MonotonicTime heard() const { return heard_; }

  // Is this a rank that was farther before, or of another world? Then its process has been started
  // again, and reads in the stream's next generation.
  bool BeginsAnew(const RankReport& report) const;
  // Has a rank that reads through that member named this list (RankReport::traces)?
  bool NamedBy(MemberId member, std::string_view digest) const;
  // The lists that ranks name, of the passes that are being read and of later ones. Borrowed until
  // the next report.
  NamedTraces Traces() const;
  // May a plan go by them? Not if ranks disagree, or read something else than they say.
  bool TracesHold() const;
  // Has every rank ended, and read what its lists said? The lists have gone by then.
  bool HasReadByLists() const { return names_lists_ && TracesHold() && AllRanksEnded(); }

  // Is the rank known from that member?
  bool Has(Rank rank, MemberId member) const;

  // Takes in what `member` says of one of the ranks.
  void Observe(const RankReport& report, MemberId member, MonotonicTime now);
  // A node has decided for a rank up to `next`.
  void Reached(const Cut& next);
  // A node has a plan that decides at `next`, which may be of the coordinator before.
  void NotePlanned(const Cut& next);
  // In that pass, or in a later one?
  bool IsPlannedIn(PassNumber pass) const { return planned_ && planned_->pass >= pass; }
  // It takes the place of the generation before, for which nodes have counted what was read by now.
  void TakeOver() { first_counted_ = frontier_.pass + 1; }
  // Ranks heard before `lost_before` read through no node, nor do those of members that have gone.
  void LoseRanks(MonotonicTime lost_before);
  void ForgetMember(MemberId member);
  // Nobody listened for this long: that was not the ranks' silence.
  void Forgive(Duration pause);

  // When the first rank began to read; only of a stream that has been read.
  MonotonicTime started_at() const { return started_at_; }
  bool AllRanksKnown() const { return ranks_.size() == recipe_.world && started_; }
  // Has a rank said in what order it reads?
  bool AnnouncesOrder() const { return recipe_.known || !Traces().empty(); }
  // What plans take their order to be: not known if they disagree, or read something else.
  Recipe recipe() const;
  bool AllRanksEnded() const {
    return ranks_.size() != 0 && ranks_.totals().ended == ranks_.size();
  }
  // All ranks known so far have ended or are lost.
  bool NobodyReads() const { return ranks_.totals().idle == ranks_.size(); }

  // The plan's view. The order is unknown when ranks disagree or read something else than
  // predicted.
  StreamState State() const;
  // Have all ranks read that pass from its begin to its end?
  bool HasRead(PassNumber pass) const;
  // The pass in which the last of its ranks is that reads; 0 before all have begun.
  PassNumber LowestPass() const;
  // The farthest place that any rank has reached, at the start of a pass rather than at an end.
  Cut Frontier() const;
  // From where the first plan of this coordinator decides that includes this stream: its begin; if
  // a coordinator before has planned it, where it is, and not beyond the pass that was planned.
  Cut FirstCut() const;
  // Positions a second while reading, all ranks together; none yet: nullopt.
  std::optional<double> rate() const { return rate_; }
  // Positions read since pass 0 began, as the mean of the ranks that read.
  double progress() const { return last_progress_; }
  // As far as passes are read (StreamState::stops_at).
  Position pass_length() const { return pass_length_; }

  // What the ranks disagree on, with both values; empty: nothing.
  const std::string& conflict() const { return conflict_; }
  std::size_t ranks_attached() const { return ranks_.size(); }
  std::size_t ranks_lost() const { return ranks_.totals().lost; }

 private:
  void TakeRecipe(const RankReport& report);
  void TakeLength(const RankReport& report, MonotonicTime now);
  void NoteEnds(const RankReport& report);
  bool EndedEarly(const RankReport& report) const;
  Position LeastEnd() const;
  void CheckRecipe(const RankReport& report);
  void FollowEpochs(const RankReport& report);
  void StartAt(const RankReport& report, std::uint32_t epoch_step);
  void StartEarlier(const RankReport& report);
  void MeasureRate(MonotonicTime now);
  double Progress() const;
  Position StopsAt() const;

  StreamId id_;
  std::string name_;
  std::uint32_t incarnation_;
  Version generation_;
  Recipe recipe_;  // of the rank that was heard first
  Rank recipe_rank_ = 0;
  Position whole_length_ = 0;  // of a pass that is read to its end
  Position pass_length_ = 0;
  std::string conflict_;
  bool names_lists_ = false;  // some rank has
  StreamRanks ranks_;
  MonotonicTime heard_;

  bool started_ = false;  // some rank has begun a pass
  MonotonicTime started_at_;
  Cut first_cut_;
  std::optional<Cut> planned_;  // the farthest place at which a node had a plan
  Cut frontier_;
  std::set<PassNumber> cut_short_;  // of the latest passes, those that ended before their end
  PassNumber first_counted_ = 0;    // earlier ones were counted in part for another generation
  PassNumber first_pass_ = 0;
  std::uint64_t first_epoch_ = 0;
  std::uint32_t epoch_step_ = 1;
  PassNumber confirmed_pass_ = 0;  // the last whose epoch some rank has reported

  std::optional<double> rate_;
  struct Mark {
    double progress = 0;
    MonotonicTime at;
  };
  std::array<Mark, 2> marks_;  // the rate is that since the first; the second takes its place
  double last_progress_ = 0;
  MonotonicTime progressed_at_;
};

using TrackedStreams = std::map<StreamId, TrackedStream>;

}  // namespace optcache::coordination
