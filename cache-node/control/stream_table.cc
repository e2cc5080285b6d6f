// Lists the ranks that read here, as reports and inventories tell them to the coordinator.
//
// A rank belongs to the connection that attached it last; what other connections say of it is
// ignored. Each listed stream and rank takes from `room_` the most bytes that its part of a report
// can have, so the streams never exceed their half of a report. A rank that has ended keeps its
// place for a minute and gives way to others before that. `decided` is how far this node has
// answered, which may be ahead of what the trainer has consumed; an inventory names the later of
// the two, because the decisions of the plan have been carried out up to there.

#include "cache-node/control/stream_table.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "coordination/desired_state.h"
#include "coordination/report_size.h"
#include "coordination/stream_recipe.h"

namespace optcache::node {
namespace {

constexpr Duration kListEndedFor = std::chrono::minutes(1);

std::string NamespaceOfStream(const wire::StreamAttach& attach) {
  return std::string(coordination::NamespaceOf(attach.stream_name));
}

std::size_t BytesOfStream(const wire::StreamAttach& attach) {
  return coordination::kMaxStreamJsonBytes + coordination::MaxTextJsonBytes(attach.stream_name) +
         coordination::MaxTextJsonBytes(attach.dataset_name);
}

// With the lists that it may come to have, without the text of its order.
std::size_t BytesOfRank(const wire::StreamAttach& attach) {
  const std::size_t lists = attach.known ? 0 : kTracesAhead + 1;
  return coordination::kMaxRankJsonBytes + lists * coordination::kMaxTraceJsonBytes;
}

}  // namespace

bool StreamTable::AllEnded(const Stream& stream) {
  return std::ranges::all_of(stream.ranks,
                             [](const auto& rank) { return rank.second.ended.has_value(); });
}

Status StreamTable::OnAttach(ClientId from, const wire::StreamAttach& attach) {
  if (attach.world == 0 || attach.world > coordination::kMaxWorld || attach.rank >= attach.world) {
    return {Code::kInvalidArgument, "rank is not below world size"};
  }
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.size() <= coordination::kMaxNameBytes && IsUtf8(name);
  };
  if (attach.stream == 0 || !is_name(attach.stream_name) || !is_name(attach.dataset_name)) {
    return {Code::kInvalidArgument, "a stream needs an id, and names of 1 to " +
                                        std::to_string(coordination::kMaxNameBytes) +
                                        " bytes of UTF-8"};
  }
  const auto known = streams_.find(attach.stream);
  if (known != streams_.end() && known->second.attach.stream_name != attach.stream_name) {
    return {Code::kInvalidArgument, "the id of this stream is that of another"};
  }
  ForgetEnded(attach.stream, attach.rank);
  RETURN_IF_ERROR(MakeRoom(attach));
  Stream& stream = streams_[attach.stream];
  stream.attach = attach;
  RankState& rank = stream.ranks[attach.rank];
  Charge(stream, stream.listed_bytes, BytesOfStream(attach));
  Charge(stream, rank.listed_bytes, BytesOfRank(attach));
  const bool again = rank.from != 0;  // a sidecar that reconnected: its progress still holds
  rank.from = from;
  rank.report.rank = attach.rank;
  rank.report.recipe = {.sampler_kind = attach.sampler_kind,
                        .size = attach.size,
                        .seed = attach.seed,
                        .world = attach.world,
                        .shuffle = attach.shuffle,
                        .drop_last = attach.drop_last,
                        .modern_randperm = attach.modern_randperm,
                        .base_seed = attach.base_seed,
                        .tail_permutation = attach.tail_permutation,
                        .known = attach.known,
                        .passes = attach.passes};
  if (!again) rank.report.order_known = attach.known;
  rank.traces.clear();  // they are sent again
  rank.ListTraces();
  ++changes_;
  return OkStatus();
}

// Of a generation before: all ranks of the stream if none goes on, else this one.
void StreamTable::ForgetEnded(StreamId stream, Rank rank) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  const std::map<Rank, RankState>& ranks = found->second.ranks;
  std::vector<Rank> over;
  if (AllEnded(found->second)) {
    for (const auto& [number, _] : ranks)
      over.push_back(number);
  } else if (const auto again = ranks.find(rank); again != ranks.end() && again->second.ended) {
    over.push_back(rank);
  }
  for (const Rank number : over)
    Drop(stream, number);
}

// For a rank that attaches, beside what it has.
Status StreamTable::MakeRoom(const wire::StreamAttach& attach) {
  const auto found = streams_.find(attach.stream);
  const bool is_known = found != streams_.end();
  std::size_t has = 0;
  if (is_known) {
    has = found->second.listed_bytes;
    const auto rank = found->second.ranks.find(attach.rank);
    if (rank != found->second.ranks.end()) has += rank->second.listed_bytes;
  }
  const std::size_t needs = BytesOfStream(attach) + BytesOfRank(attach);
  return MakeRoom(NamespaceOfStream(attach), needs - std::min(needs, has), is_known ? 0 : 1);
}

// At the cost of ranks that have ended.
Status StreamTable::MakeRoom(const std::string& name_space, std::size_t bytes,
                             std::size_t streams) {
  for (;;) {
    Status fits = room_.Fits(name_space, bytes);
    if (streams_.size() + streams > coordination::kMaxStreams) {
      fits = {Code::kResourceExhausted, "too many streams on this node"};
    }
    if (fits.ok()) return fits;
    const auto gives_way = room_.GivesWay(name_space, bytes);
    if (!gives_way) return fits;
    Drop(gives_way->stream, gives_way->rank);
  }
}

void StreamTable::Charge(const Stream& stream, std::size_t& charged, std::size_t bytes) {
  const std::string name_space = NamespaceOfStream(stream.attach);
  room_.Take(name_space, bytes);
  if (charged > 0) room_.Free(name_space, charged);
  charged = bytes;
}

// A rank that is listed is not listed any more; nor is its stream, if it was the last.
void StreamTable::Drop(StreamId stream, Rank rank) {
  const auto found = streams_.find(stream);
  Stream& of = found->second;
  const auto listed = of.ranks.find(rank);
  const std::string name_space = NamespaceOfStream(of.attach);
  if (const auto ended = listed->second.ended) {
    room_.OnGone(name_space, {.since = *ended, .stream = stream, .rank = rank});
  }
  room_.Free(name_space, listed->second.listed_bytes);
  of.ranks.erase(listed);
  if (!of.ranks.empty()) return;
  room_.Free(name_space, of.listed_bytes);
  streams_.erase(found);
}

// The rank, if it is `from` that has attached it; else null.
StreamTable::RankState* StreamTable::Find(ClientId from, StreamId stream, Rank rank) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return nullptr;
  const auto listed = found->second.ranks.find(rank);
  const bool is_its_own = listed != found->second.ranks.end() && listed->second.from == from;
  return is_its_own ? &listed->second : nullptr;
}

void StreamTable::OnOrder(ClientId from, const wire::StreamOrder& order) {
  RankState* const rank = Find(from, order.stream, order.rank);
  if (rank == nullptr || rank->ended) return;
  coordination::Recipe recipe = rank->report.recipe;
  if (!coordination::TakeOrder(order.recipe, recipe)) return;
  const std::size_t before = coordination::MaxTextJsonBytes(rank->report.recipe.order);
  const std::size_t after = coordination::MaxTextJsonBytes(recipe.order);
  const Stream& stream = streams_.at(order.stream);
  const std::size_t more = after - std::min(after, before);
  if (!MakeRoom(NamespaceOfStream(stream.attach), more, /*streams=*/0).ok()) return;
  Charge(stream, rank->listed_bytes, rank->listed_bytes - before + after);
  rank->report.recipe = std::move(recipe);
  if (!rank->report.started) rank->report.order_known = true;
  ++changes_;
}

void StreamTable::OnPassEnd(ClientId from, const wire::StreamPassEnd& end) {
  RankState* const rank = Find(from, end.stream, end.rank);
  if (rank == nullptr || std::exchange(rank->report.pass_reads, end.reads) == end.reads) return;
  ++changes_;
}

Status StreamTable::OnTrace(ClientId from, const wire::StreamTrace& part) {
  RankState* const found = Find(from, part.stream, part.rank);
  if (found == nullptr || found->ended) return OkStatus();
  RankState& rank = *found;
  const PassNumber first = rank.report.started ? rank.report.pass : 0;
  const bool is_near = rank.report.started ? part.pass >= first && part.pass - first <= kTracesAhead
                                           : part.pass <= kMaxPass;
  Status status;
  if (rank.report.recipe.known || !is_near) {
    status = {Code::kInvalidArgument, "a list of a pass that is over, far ahead, or not wanted"};
  } else if (part.offset == 0 && !HasRoomFor(from, rank, part)) {
    status = {Code::kResourceExhausted, "there is no room for another list"};
  } else {
    status = rank.traces[part.pass].Add(part);
  }
  const bool changes = !status.ok() || rank.traces[part.pass].whole();
  if (!status.ok()) rank.traces.erase(part.pass);
  if (!changes) return status;
  rank.ListTraces();
  ++changes_;
  return status;
}

// What a list will take counts from its first part on.
bool StreamTable::HasRoomFor(ClientId from, const RankState& asker,
                             const wire::StreamTrace& part) const {
  std::uint64_t of_client = TraceParts::SizeOf(part);
  std::uint64_t all = of_client;
  if (of_client == 0 || (!asker.traces.contains(part.pass) && asker.traces.size() > kTracesAhead))
    return false;
  for (const auto& [_, stream] : streams_) {
    for (const auto& [number, rank] : stream.ranks) {
      for (const auto& [pass, trace] : rank.traces) {
        if (&rank == &asker && pass == part.pass) continue;
        all += trace.size();
        if (rank.from == from) of_client += trace.size();
      }
    }
  }
  return of_client <= kMaxTraceBytesOfClient && all <= kMaxTraceBytesHere;
}

void StreamTable::RankState::ForgetTraces(PassNumber below) {
  if (std::erase_if(traces, [below](const auto& trace) { return trace.first < below; }) > 0)
    ListTraces();
}

void StreamTable::RankState::ListTraces() {
  report.traces.clear();
  for (const auto& [pass, trace] : traces) {
    if (!trace.whole()) continue;
    report.traces.push_back({.pass = pass, .length = trace.length(), .digest = trace.digest()});
  }
}

std::shared_ptr<const std::string> StreamTable::TraceBytes(const std::string& digest) const {
  for (const auto& [_, stream] : streams_) {
    for (const auto& [number, rank] : stream.ranks) {
      for (const auto& [pass, trace] : rank.traces) {
        if (trace.whole() && trace.digest() == digest) return trace.bytes();
      }
    }
  }
  return nullptr;
}

void StreamTable::OnProgress(ClientId from, const wire::StreamProgress& progress,
                             MonotonicTime now) {
  RankState* const found = Find(from, progress.stream, progress.rank);
  if (found == nullptr || progress.pass > kMaxPass) return;
  RankState& rank = *found;
  coordination::RankReport& report = rank.report;
  const bool new_pass =
      !report.started || progress.pass != report.pass || progress.epoch != report.epoch;
  if (new_pass) report.last_pass_end = report.position;
  if (progress.pass < report.pass) {  // its process has been started again
    report.last_pass_end = 0;
    rank.decided = {};
    std::erase_if(rank.traces, [&progress](const auto& trace) {
      return trace.first > progress.pass + kTracesAhead;
    });
    rank.ListTraces();
  }
  if (new_pass || progress.ended != report.ended || progress.order_known != report.order_known) {
    ++changes_;
  }
  report.started = true;
  report.pass = progress.pass;
  report.epoch = progress.epoch;
  report.start = progress.start;
  report.position = progress.position;
  report.wait_us = progress.wait_us;
  report.order_known = progress.order_known;
  report.ended = progress.ended;
  rank.ForgetTraces(progress.ended ? std::numeric_limits<PassNumber>::max() : progress.pass);
  if (!progress.ended || rank.ended) return;
  rank.ended = now;
  room_.OnEnded(NamespaceOfStream(streams_.at(progress.stream).attach),
                {.since = now, .stream = progress.stream, .rank = progress.rank});
}

bool StreamTable::Reads(ClientId from, StreamId stream, PassNumber pass) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return false;
  return std::ranges::any_of(found->second.ranks, [from, pass](const auto& listed) {
    const RankState& rank = listed.second;
    return rank.from == from && (pass <= kPassesAhead || pass - kPassesAhead <= rank.report.pass);
  });
}

void StreamTable::OnServed(ClientId from, const wire::Get& get) {
  const auto stream = streams_.find(get.stream);
  if (stream == streams_.end()) return;
  for (const wire::ReadItem& item : get.items) {
    const auto rank =
        stream->second.ranks.find(static_cast<Rank>(item.position % stream->second.attach.world));
    if (rank == stream->second.ranks.end() || rank->second.from != from) continue;
    coordination::Cut& decided = rank->second.decided;
    decided = std::max(decided, {.pass = item.pass, .position = item.position + 1});
  }
}

void StreamTable::OnRevoked(ClientId from, StreamId stream, Rank rank) {
  if (Find(from, stream, rank) == nullptr) return;
  Drop(stream, rank);
  ++changes_;
}

void StreamTable::OnClosed(ClientId from) {
  std::vector<std::pair<StreamId, Rank>> lost;
  for (const auto& [id, stream] : streams_) {
    for (const auto& [number, rank] : stream.ranks) {
      if (rank.from == from && !rank.ended) lost.emplace_back(id, number);
    }
  }
  for (const auto& [stream, rank] : lost)
    Drop(stream, rank);
  if (!lost.empty()) ++changes_;
}

void StreamTable::Sweep(MonotonicTime now) {
  for (auto first = room_.FirstEnded(); first && now - first->since >= kListEndedFor;
       first = room_.FirstEnded()) {
    Drop(first->stream, first->rank);
  }
}

std::vector<coordination::StreamReport> StreamTable::Report() const {
  std::vector<coordination::StreamReport> reports;
  for (const auto& [id, stream] : streams_) {
    coordination::StreamReport report{.id = id,
                                      .name = stream.attach.stream_name,
                                      .incarnation = stream.attach.incarnation,
                                      .dataset = stream.attach.dataset_name,
                                      .dataset_key = stream.attach.dataset};
    for (const auto& [_, rank] : stream.ranks)
      report.ranks.push_back(rank.report);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::optional<StreamTable::PassRange> StreamTable::Passes(StreamId stream) const {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return std::nullopt;
  std::optional<PassRange> range;
  for (const auto& [_, rank] : found->second.ranks) {
    if (!rank.report.started) continue;
    const PassNumber pass = rank.report.pass;
    if (!range) range = PassRange{.lowest = pass, .highest = pass};
    range->lowest = std::min(range->lowest, pass);
    range->highest = std::max(range->highest, pass);
  }
  return range;
}

std::vector<coordination::RankPosition> StreamTable::Positions(wire::DatasetKey dataset) const {
  std::vector<coordination::RankPosition> positions;
  for (const auto& [id, stream] : streams_) {
    if (stream.attach.dataset != dataset) continue;
    for (const auto& [number, rank] : stream.ranks) {
      if (rank.ended) continue;  // others may be in the stream's next generation
      const coordination::Cut read{.pass = rank.report.pass, .position = rank.report.position};
      positions.push_back({.stream = id, .rank = number, .next = std::max(read, rank.decided)});
    }
  }
  return positions;
}

}  // namespace optcache::node
