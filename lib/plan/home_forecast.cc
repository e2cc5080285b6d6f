// Replays reads where no plan decides, and counts what is read from where.
//
// The idea: by Pin, LRU or None the outcome of a read depends only on what lies where, and not on
// the future. So the streams' orders are merged for a round, as the planner merges them, and each
// read is carried out on a model of the nodes: a hit, or a read of the store and perhaps a sample
// kept at its home. A round is what the streams read while the slowest makes a pass.
//
// Invariants: `holders_`, `used_` and the lists of `by_use_` say the same. A held sample is in the
// list of its holder, in the order of use, and its bytes are in that node's sum. A stream keeps
// only the orders from its present pass on.

#include "plan/home_forecast.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "plan/merged_order.h"

namespace optcache::plan {
namespace {

// However far apart the streams' rates are.
constexpr std::uint64_t kMaxPassesInRound = 4;

// number * part / whole, which fits though the product may not.
std::uint64_t InProportion(std::uint64_t number, std::uint64_t part, std::uint64_t whole) {
  return number / whole * part + number % whole * part / whole;
}

NodeShare Scaled(const NodeShare& share, std::uint64_t part, std::uint64_t whole) {
  return {.reads = InProportion(share.reads, part, whole),
          .store_reads = InProportion(share.store_reads, part, whole),
          .read_bytes = InProportion(share.read_bytes, part, whole),
          .store_bytes = InProportion(share.store_bytes, part, whole),
          .moved_bytes = InProportion(share.moved_bytes, part, whole)};
}

Status ForecastError(std::string message) {
  return {Code::kInvalidArgument, "forecast: " + std::move(message)};
}

Status CheckHomeInputs(const HomeInputs& inputs) {
  const std::size_t nodes = inputs.capacities.size();
  if (nodes >= kNoNode)
    return ForecastError(std::to_string(nodes) + " nodes; it takes at most 65534");
  if (inputs.streams.size() > MergedOrder::kMaxStreams) {
    return ForecastError(std::to_string(inputs.streams.size()) + " streams; at most " +
                         std::to_string(MergedOrder::kMaxStreams) + " share a dataset's cache");
  }
  const auto fits = [&](const Holders& nodes_of, std::size_t count) {
    if (nodes_of.size() != count) return false;
    for (std::size_t i = 0; i < count && !inputs.stop.At(i); ++i) {
      if (nodes_of[i] >= nodes && nodes_of[i] != kNoNode) return false;
    }
    return true;
  };
  if (!inputs.base.empty() && !fits(inputs.base, inputs.sizes.count()))
    return ForecastError("the base names samples or nodes that do not exist");
  if (inputs.rule != HomeRule::kNone && !fits(inputs.homes, inputs.sizes.count()))
    return ForecastError("there is not one home for each sample");
  for (const StreamInput& stream : inputs.streams) {
    if (stream.node_of_rank.empty())
      return ForecastError("stream " + std::to_string(stream.id) + " has no ranks");
    if (stream.stops_at == 0 || stream.rate > kMaxRate)
      return ForecastError("stream " + std::to_string(stream.id) + " stops at 0, or is too fast");
  }
  return OkStatus();
}

// Reads of each stream in a round.
std::vector<std::uint64_t> ReadsInRound(
    const std::vector<std::pair<std::uint64_t, std::uint32_t>>& all) {
  std::vector<std::uint64_t> reads(all.size());
  std::uint64_t passes = 0;
  for (std::size_t s = 0; s < all.size(); ++s) {
    for (const auto& [pass_reads, rate] : all)
      reads[s] = std::max(reads[s], pass_reads * all[s].second / rate);
    passes += all[s].first;
  }
  const std::uint64_t sum = std::accumulate(reads.begin(), reads.end(), std::uint64_t{0});
  const std::uint64_t divisor = sum / (kMaxPassesInRound * passes) + 1;
  for (std::uint64_t& of_stream : reads)
    of_stream = std::max<std::uint64_t>(of_stream / divisor, 1);
  return reads;
}

}  // namespace

PassForecast OnePassOfEach(const std::map<StreamId, StreamForecast>& streams) {
  PassForecast sum;
  for (const auto& [_, stream] : streams) {
    if (stream.all.reads == 0) continue;
    sum.all += Scaled(stream.all, stream.pass_reads, stream.all.reads);
    sum.own += Scaled(stream.own, stream.pass_reads, stream.all.reads);
  }
  return sum;
}

Result<HomeForecast> HomeForecast::Make(HomeInputs inputs, OrderProvider orders, NodeIndex self) {
  RETURN_IF_ERROR(CheckHomeInputs(inputs));
  std::ranges::sort(inputs.streams, {}, &StreamInput::id);
  return HomeForecast(std::move(inputs), std::move(orders), self);
}

HomeForecast::HomeForecast(HomeInputs inputs, OrderProvider orders, NodeIndex self)
    : inputs_(std::move(inputs)),
      orders_(std::move(orders)),
      self_(self),
      used_(inputs_.capacities.size()),
      by_use_(inputs_.sizes.count(), inputs_.stop) {
  Fill(holders_, inputs_.sizes.count(), kNoNode, inputs_.stop);
  for (std::size_t node = 0; node < used_.size(); ++node)
    by_use_.AddList();
  for (SampleId sample = 0; sample < inputs_.base.size() && !inputs_.stop.At(sample); ++sample) {
    if (inputs_.base[sample] != kNoNode) Hold(sample, inputs_.base[sample]);
  }
  inputs_.base = {};
  for (const StreamInput& input : inputs_.streams)
    streams_.push_back({.input = input, .pass = input.pass, .position = input.position});
}

Status HomeForecast::CheckStop() const {
  return inputs_.stop.Now() ? Status(Code::kCancelled, "forecast: not wanted any more")
                            : OkStatus();
}

Position HomeForecast::EndOf(const Stream& stream, const Order& order) {
  return std::min<Position>(order->size(), stream.input.stops_at);
}

// False if the stream does not have this many passes from its present one on.
Result<bool> HomeForecast::Load(Stream& stream, std::size_t passes) {
  while (stream.orders.size() < passes) {
    const auto pass = static_cast<PassNumber>(stream.pass + stream.orders.size());
    RETURN_IF_ERROR(CheckStop());
    Order order = orders_(stream.input.id, pass);
    RETURN_IF_ERROR(CheckStop());  // it may be null for that
    if (order == nullptr) return false;
    if (order->empty() || LargestOf(*order, inputs_.stop) >= inputs_.sizes.count()) {
      return Error(ForecastError("stream " + std::to_string(stream.input.id) + ", pass " +
                                 std::to_string(pass) +
                                 ": its order is empty, or names a sample that does not exist"));
    }
    stream.pass_reads = EndOf(stream, order);
    stream.orders.push_back(std::move(order));
  }
  return true;
}

void HomeForecast::Advance(Stream& stream, std::uint64_t reads) {
  stream.reads_done += reads;
  stream.position += reads;
  while (!stream.orders.empty() && stream.position >= EndOf(stream, stream.orders.front())) {
    stream.position -= EndOf(stream, stream.orders.front());
    stream.orders.pop_front();
    ++stream.pass;
  }
}

Result<std::vector<HomeForecast::Stream*>> HomeForecast::ActiveStreams() {
  std::vector<Stream*> active;
  for (Stream& stream : streams_) {
    if (stream.input.rate == 0) continue;
    ASSIGN_OR_RETURN(bool reads, Load(stream, 1));
    if (reads) {  // a cut may lie at the end of its pass
      stream.position = std::min(stream.position, EndOf(stream, stream.orders.front()));
      Advance(stream, 0);
      ASSIGN_OR_RETURN(reads, Load(stream, 1));
    }
    if (reads) active.push_back(&stream);
  }
  return active;
}

Result<std::map<StreamId, StreamForecast>> HomeForecast::Next() {
  ASSIGN_OR_RETURN(const std::vector<Stream*> active, ActiveStreams());
  std::vector<std::pair<std::uint64_t, std::uint32_t>> paces;
  for (const Stream* stream : active)
    paces.emplace_back(stream->pass_reads, stream->input.rate);
  const std::vector<std::uint64_t> wanted = ReadsInRound(paces);
  std::vector<MergeStream> ahead;
  std::uint64_t round = 0;
  for (std::size_t s = 0; s < active.size(); ++s) {
    Stream& stream = *active[s];
    MergeStream& merge = ahead.emplace_back(MergeStream{.segments = {},
                                                        .node_of_rank = stream.input.node_of_rank,
                                                        .rate = stream.input.rate,
                                                        .reads_done = stream.reads_done});
    std::uint64_t got = 0;
    for (std::size_t i = 0; got < wanted[s]; ++i) {
      ASSIGN_OR_RETURN(const bool reads, Load(stream, i + 1));
      if (!reads) break;
      const Position begin = i == 0 ? stream.position : 0;
      const Position end = EndOf(stream, stream.orders[i]);
      const auto pass = static_cast<PassNumber>(stream.pass + i);
      merge.segments.push_back(
          {.order = stream.orders[i], .pass = pass, .begin = begin, .end = end});
      got += end - begin;
    }
    round += std::min(got, wanted[s]);
  }
  std::map<StreamId, StreamForecast> forecasts;
  if (active.empty()) return forecasts;
  const MergedOrder merged(std::move(ahead), static_cast<std::size_t>(round), inputs_.stop);
  RETURN_IF_ERROR(CheckStop());
  std::vector<StreamForecast> by_stream(active.size());
  MergedOrder::Cursor cursor(merged);
  for (std::size_t i = 0; i < merged.size() && !inputs_.stop.At(i); ++i) {
    const MergedOrder::Read read = cursor.Next();
    Read(read.sample, read.reader, by_stream[read.stream]);
  }
  RETURN_IF_ERROR(CheckStop());
  for (std::size_t s = 0; s < active.size(); ++s) {
    by_stream[s].pass_reads = active[s]->pass_reads;
    Advance(*active[s], by_stream[s].all.reads);
    if (by_stream[s].all.reads > 0) forecasts[active[s]->input.id] = by_stream[s];
  }
  return forecasts;
}

void HomeForecast::Read(SampleId sample, NodeIndex reader, StreamForecast& forecast) {
  const ByteCount bytes = inputs_.sizes[sample];
  const bool is_own = reader != kNoNode && reader == self_;
  NodeShare share{.reads = 1, .read_bytes = bytes};
  const bool is_hit = reader != kNoNode && holders_[sample] != kNoNode;
  if (!is_hit) {
    share.store_reads = 1;
    share.store_bytes = bytes;
    if (reader != kNoNode && Keep(sample) && holders_[sample] != reader) share.moved_bytes = bytes;
  } else if (inputs_.rule == HomeRule::kNone) {
    Drop(sample);
  } else {
    by_use_.Unlink(sample);
    by_use_.PushNewest(holders_[sample], sample);
  }
  forecast.all += share;
  if (is_own) forecast.own += share;
}

// At its home.
bool HomeForecast::Keep(SampleId sample) {
  if (inputs_.rule == HomeRule::kNone) return false;
  const NodeIndex home = inputs_.homes[sample];
  if (home == kNoNode) return false;
  const ByteCount bytes = inputs_.sizes[sample];
  const ByteCount capacity = inputs_.capacities[home];
  if (bytes > capacity) return false;
  while (inputs_.rule == HomeRule::kLru && used_[home] + bytes > capacity)
    Drop(by_use_.Oldest(home));
  if (used_[home] + bytes > capacity) return false;
  Hold(sample, home);
  return true;
}

void HomeForecast::Hold(SampleId sample, NodeIndex node) {
  holders_[sample] = node;
  used_[node] += inputs_.sizes[sample];
  by_use_.PushNewest(node, sample);
}

void HomeForecast::Drop(SampleId sample) {
  used_[holders_[sample]] -= inputs_.sizes[sample];
  holders_[sample] = kNoNode;
  by_use_.Unlink(sample);
}

}  // namespace optcache::plan
