// Keeps the streams that read one manifest, in their generations.
//
// The idea: a rank that was started again reads in the stream's next generation, beside the ranks
// that go on in the present one. The next generation takes the stream's place when all of its ranks
// are known, or when nobody reads in the present one any more (BeginNextGenerations).
//
// Invariants: a stream has at most one next generation. Where a rank reads is decided before what
// it says is taken in (GenerationOf).

#include "coordinator/stream_registry.h"

#include <algorithm>
#include <map>
#include <utility>

namespace optcache::coordination {
namespace {

constexpr std::size_t kMaxRefusedNames = 8;

}  // namespace

std::size_t StreamRegistry::WorldOf(const TrackedStream& stream) const {
  const auto next = next_generations_.find(stream.id());
  return std::max<std::size_t>(stream.world(),
                               next == next_generations_.end() ? 0 : next->second.world());
}

StreamRegistry::RankCount StreamRegistry::CountRanks(std::string_view name) const {
  RankCount count;
  for (const auto& [id, stream] : streams_) {
    const std::size_t world = WorldOf(stream);
    if (stream.name() == name) {
      count.named = std::max(count.named.value_or(0), world);
    } else {
      count.others += world;
    }
  }
  return count;
}

std::size_t StreamRegistry::ranks() const {
  std::size_t ranks = 0;
  for (const auto& [id, stream] : streams_)
    ranks += WorldOf(stream);
  return ranks;
}

bool StreamRegistry::IsIdOfAnother(const StreamReport& report) const {
  const auto stream = streams_.find(report.id);
  return stream != streams_.end() && (stream->second.name() != report.name ||
                                      stream->second.incarnation() != report.incarnation);
}

bool StreamRegistry::HasLater(const StreamReport& report) const {
  return std::ranges::any_of(streams_, [&](const auto& item) {
    return item.second.name() == report.name && item.second.incarnation() > report.incarnation;
  });
}

void StreamRegistry::EndAll(std::string_view name) {
  for (auto* generations : {&streams_, &next_generations_})
    std::erase_if(*generations, [&](const auto& item) { return item.second.name() == name; });
}

void StreamRegistry::EndEarlier(const StreamReport& report) {
  for (auto* generations : {&streams_, &next_generations_}) {
    std::erase_if(*generations, [&](const auto& item) {
      return item.second.name() == report.name && item.second.incarnation() < report.incarnation;
    });
  }
}

void StreamRegistry::Refuse(const std::string& stream) {
  const bool noted = std::ranges::find(refused_, stream) != refused_.end();
  if (!noted && refused_.size() < kMaxRefusedNames) refused_.push_back(stream);
}

void StreamRegistry::Begin(const StreamReport& report, Version generation, MonotonicTime now) {
  streams_.emplace(report.id, TrackedStream(report, generation, now));
}

bool StreamRegistry::NeedsNextGeneration(StreamId stream, const RankReport& rank) const {
  return !next_generations_.contains(stream) && streams_.at(stream).BeginsAnew(rank);
}

void StreamRegistry::BeginNextGeneration(const StreamReport& report, Version generation,
                                         MonotonicTime now) {
  next_generations_.emplace(report.id, TrackedStream(report, generation, now));
}

// One that is started again goes into the next, whichever ranks still read in this one.
TrackedStream& StreamRegistry::GenerationOf(StreamId stream, const RankReport& rank,
                                            MemberId member) {
  TrackedStream& present = streams_.at(stream);
  const auto next = next_generations_.find(stream);
  if (next == next_generations_.end()) return present;
  const bool of_its_world =
      rank.recipe.world == next->second.world() && rank.recipe.world != present.world();
  const bool is_there = next->second.Has(rank.rank, member);
  return is_there || of_its_world || present.BeginsAnew(rank) ? next->second : present;
}

void StreamRegistry::Observe(StreamId stream, const RankReport& rank, MemberId member,
                             MonotonicTime now) {
  GenerationOf(stream, rank, member).Observe(rank, member, now);
}

void StreamRegistry::NotePosition(const RankPosition& position, MemberId member) {
  const auto stream = streams_.find(position.stream);
  if (stream == streams_.end() || !stream->second.Has(position.rank, member)) return;
  stream->second.Reached(position.next);
  if (position.planned) stream->second.NotePlanned(position.next);
}

std::vector<StreamId> StreamRegistry::EndStreams(const Silence& silence, MonotonicTime now) {
  for (auto* generations : {&streams_, &next_generations_}) {
    std::erase_if(*generations, [&](const auto& item) {
      const TrackedStream& stream = item.second;
      return stream.AllRanksEnded() || now - stream.heard() > silence.stream;
    });
    for (auto& [id, stream] : *generations)
      stream.LoseRanks(now - silence.rank);
  }
  return BeginNextGenerations();
}

std::vector<StreamId> StreamRegistry::BeginNextGenerations() {
  std::vector<StreamId> begun;
  for (auto next = next_generations_.begin(); next != next_generations_.end();) {
    auto& [id, generation] = *next;
    const auto present = streams_.find(id);
    const bool begins =
        present == streams_.end() || present->second.NobodyReads() || generation.AllRanksKnown();
    if (!begins) {
      ++next;
      continue;
    }
    begun.push_back(id);
    streams_.insert_or_assign(id, std::move(generation)).first->second.TakeOver();
    next = next_generations_.erase(next);
  }
  return begun;
}

void StreamRegistry::EndIdle(const TrackedStreams& elsewhere) {
  std::erase_if(streams_, [&](const auto& item) {
    return item.second.NobodyReads() && elsewhere.contains(item.first);
  });
}

void StreamRegistry::ForgetMember(MemberId member) {
  for (auto* generations : {&streams_, &next_generations_}) {
    for (auto& [id, stream] : *generations)
      stream.ForgetMember(member);
  }
}

void StreamRegistry::Forgive(Duration pause) {
  for (auto* generations : {&streams_, &next_generations_}) {
    for (auto& [id, stream] : *generations)
      stream.Forgive(pause);
  }
}

bool StreamRegistry::WantsTrace(StreamId stream, MemberId member, const PassTrace& trace) const {
  const auto known = streams_.find(stream);
  return known != streams_.end() && trace.pass >= known->second.LowestPass() &&
         known->second.NamedBy(member, trace.digest) && !traces_.Has(trace.digest) &&
         !traces_.Refused(trace.digest);
}

bool StreamRegistry::LacksTrace(MemberId member, std::string_view digest) const {
  return !traces_.Has(digest) && std::ranges::any_of(streams_, [&](const auto& item) {
    return item.second.NamedBy(member, digest);
  });
}

Status StreamRegistry::TakeTrace(std::string_view digest, std::string bytes,
                                 std::uint64_t samples) {
  return traces_.Take(digest, std::move(bytes), samples);
}

void StreamRegistry::FollowTraces(const std::vector<StreamState>& planned, std::uint64_t samples) {
  std::map<StreamId, NamedTraces> named;
  for (const auto& [id, stream] : streams_) {
    if (NamedTraces traces = stream.Traces(); !traces.empty()) named.emplace(id, std::move(traces));
  }
  if (named.empty() && traces_.empty()) return;
  traces_.Update(named, planned, samples);
}

}  // namespace optcache::coordination
