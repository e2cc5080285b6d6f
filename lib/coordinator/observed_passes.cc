// Counts whole passes of streams, and compares what was observed with what was predicted.
//
// The idea: a pass counts once, by a mark. The mark of a stream says up to which pass its reads are
// counted or do not count; CountPasses adds the complete passes beyond it and moves it. A stream
// without a mark has begun later, and all of its passes count. Figures are for one pass of each
// stream, so that sums over different numbers of passes can be compared.
//
// Invariants: all arithmetic is in integers, products in 128 bits and rounded to the nearest, so a
// coordinator's successor gets the same figures. Marks are sorted by stream, and at most kMaxMarks.

#include "coordinator/observed_passes.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace optcache::coordination {
namespace {

// Products of byte counts.
__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kWorsePermille = 1005;  // of the present revision's store bytes
constexpr std::uint64_t kNoisePermille = 5;     // of what is read

// a * b / c, rounded to the nearest; c is not 0.
std::uint64_t MulDiv(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b + c / 2) / c);
}

const ReadingStream* FindStream(const std::vector<ReadingStream>& streams, StreamId id) {
  const auto found = std::ranges::find(streams, id, &ReadingStream::id);
  return found == streams.end() ? nullptr : &*found;
}

// `bytes` of `passes` passes of `streams` streams, for one pass of each.
ByteCount PerEpoch(ByteCount bytes, std::uint64_t streams, std::uint64_t passes) {
  return MulDiv(bytes, streams, passes);
}

void Mark(const std::map<StreamId, PassNumber>& passes, std::vector<PassMark>& marks) {
  for (const auto& [stream, pass] : passes) {
    if (marks.size() < kMaxMarks) marks.push_back({.stream = stream, .pass = pass});
  }
}

}  // namespace

std::string RatioText(std::uint64_t permille) {
  return fmt::format("{}.{:03}", permille / kPermilleInOne, permille % kPermilleInOne);
}

std::string TenthsText(std::uint64_t tenths) {
  return fmt::format("{}.{}", tenths / 10, tenths % 10);
}

void AddPass(PassSums& sums, const PassStatus& pass, ByteCount mean_sample_bytes) {
  const PassReport& sum = pass.sum;
  const std::uint64_t hits = std::min(sum.hits + sum.peer_hits, pass.length);
  const std::uint64_t told = hits + sum.misses;
  const std::uint64_t past = pass.length > told ? pass.length - told : 0;
  ++sums.passes;
  sums.reads += pass.length;
  sums.hits += hits;
  sums.store_bytes += sum.miss_bytes;
  sums.store_bytes +=
      sum.misses > 0 ? MulDiv(past, sum.miss_bytes, sum.misses) : past * mean_sample_bytes;
  sums.moved_bytes += sum.moved_bytes;
  sums.planned_reads += sum.planned_reads;
  sums.planned_hits += sum.planned_reads - std::min(sum.planned_misses, sum.planned_reads);
  sums.planned_store_bytes += sum.planned_miss_bytes;
  sums.planned_moved_bytes += sum.planned_moved_bytes;
}

std::string NameOf(const PassStatus& pass) {
  return fmt::format("pass {} of {}", pass.sum.pass, pass.stream);
}

std::vector<PassMark> MarksOf(const std::vector<ReadingStream>& streams) {
  std::map<StreamId, PassNumber> reading;
  for (const ReadingStream& stream : streams)
    reading[stream.id] = stream.pass;
  std::vector<PassMark> marks;
  Mark(reading, marks);
  return marks;
}

std::vector<PassMark> MarksAheadOf(const std::vector<ReadingStream>& streams,
                                   const std::vector<PassStatus>& passes) {
  std::map<StreamId, PassNumber> reading;
  for (const ReadingStream& stream : streams)
    reading[stream.id] = stream.pass;
  std::map<StreamId, PassNumber> ended;
  for (const PassStatus& pass : passes) {
    auto& kind = reading.contains(pass.sum.stream) ? reading : ended;
    PassNumber& last = kind[pass.sum.stream];
    last = std::max(last, pass.sum.pass);
  }
  std::vector<PassMark> marks;
  Mark(reading, marks);
  Mark(ended, marks);
  std::ranges::sort(marks, {}, &PassMark::stream);
  return marks;
}

bool AllHaveBegunAnother(const std::vector<PassMark>& marks,
                         const std::vector<ReadingStream>& streams) {
  return std::ranges::all_of(marks, [&](const PassMark& mark) {
    const ReadingStream* const stream = FindStream(streams, mark.stream);
    return stream == nullptr || stream->pass != mark.pass;
  });
}

void ForgetEarlierGenerations(const std::vector<ReadingStream>& streams,
                              const std::vector<PassStatus>& passes, std::uint32_t after,
                              std::vector<PassMark>& marks) {
  std::erase_if(marks, [&](const PassMark& mark) {
    const ReadingStream* const stream = FindStream(streams, mark.stream);
    if (mark.passes >= after || stream == nullptr || stream->pass >= mark.pass) return false;
    return std::ranges::none_of(passes, [&mark](const PassStatus& pass) {
      return pass.sum.stream == mark.stream && pass.sum.pass >= mark.pass;  // it is read ahead
    });
  });
}

std::uint64_t CountedStreams(const std::vector<PassMark>& marks) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(marks, [](const PassMark& mark) { return mark.passes > 0; }));
}

CountedPasses CountPasses(const std::vector<PassStatus>& passes, ByteCount mean_sample_bytes,
                          std::uint32_t after, std::vector<PassMark>& marks, PassSums& sums,
                          std::string& since) {
  CountedPasses counted;
  for (const PassStatus& pass : passes) {
    if (!pass.complete || pass.length == 0) continue;
    auto mark = std::ranges::lower_bound(marks, pass.sum.stream, {}, &PassMark::stream);
    if (mark == marks.end() || mark->stream != pass.sum.stream) {
      if (marks.size() >= kMaxMarks) continue;
      mark = marks.insert(mark, {.stream = pass.sum.stream, .later = true});
    } else if (pass.sum.pass <= mark->pass || mark->passes >= after) {
      continue;
    }
    AddPass(sums, pass, mean_sample_bytes);
    mark->pass = pass.sum.pass;
    ++mark->passes;
    if (since.empty()) since = NameOf(pass);
    counted.some = true;
    counted.awaited = counted.awaited || !mark->later;
  }
  return counted;
}

LatestPasses LatestOf(const std::vector<PassStatus>& passes, const std::vector<PassMark>& marks,
                      ByteCount mean_sample_bytes) {
  std::map<StreamId, const PassStatus*> latest;
  for (const PassStatus& pass : passes) {
    const auto mark = std::ranges::find(marks, pass.sum.stream, &PassMark::stream);
    const bool counts = mark == marks.end() || pass.sum.pass > mark->pass;
    if (!pass.complete || pass.length == 0 || !counts) continue;
    const PassStatus*& last = latest[pass.sum.stream];
    if (last == nullptr || last->sum.pass < pass.sum.pass) last = &pass;
  }
  LatestPasses all{.streams = latest.size()};
  const PassStatus* first = nullptr;
  for (const auto& [stream, pass] : latest) {
    AddPass(all.sums, *pass, mean_sample_bytes);
    if (first == nullptr || pass->stream < first->stream) first = pass;
  }
  if (first != nullptr) all.since = NameOf(*first);
  return all;
}

std::optional<ObservedEpoch> ObservedOf(const PassSums& sums, std::uint64_t streams) {
  if (sums.reads == 0 || sums.passes == 0) return std::nullopt;
  return ObservedEpoch{.numbers = {.hit_permille = MulDiv(sums.hits, kPermilleInOne, sums.reads),
                                   .store_bytes = PerEpoch(sums.store_bytes, streams, sums.passes),
                                   .moved_bytes = PerEpoch(sums.moved_bytes, streams, sums.passes)},
                       .store_bytes_per_read_tenths = MulDiv(sums.store_bytes, 10, sums.reads)};
}

// What is missing to the whole is taken to be as the rest.
std::optional<EpochNumbers> PlannedOf(const PassSums& sums, std::uint64_t streams) {
  const bool covered =
      static_cast<Wide>(sums.planned_reads) * 10 >= static_cast<Wide>(sums.reads) * 9;
  if (sums.passes == 0 || sums.planned_reads == 0 || !covered) return std::nullopt;
  const auto whole = [&](ByteCount bytes) {
    return PerEpoch(MulDiv(bytes, sums.reads, sums.planned_reads), streams, sums.passes);
  };
  return EpochNumbers{.hit_permille = MulDiv(sums.planned_hits, kPermilleInOne, sums.planned_reads),
                      .store_bytes = whole(sums.planned_store_bytes),
                      .moved_bytes = whole(sums.planned_moved_bytes)};
}

std::optional<EpochNumbers> NumbersOf(const Forecast& forecast) {
  if (forecast.reads == 0) return std::nullopt;
  const std::uint64_t hits = forecast.reads - std::min(forecast.store_reads, forecast.reads);
  return EpochNumbers{.hit_permille = MulDiv(hits, kPermilleInOne, forecast.reads),
                      .store_bytes = forecast.store_bytes,
                      .moved_bytes = forecast.moved_bytes};
}

bool IsPredictedWorse(const Forecast& update, const Forecast& current) {
  if (update.reads == 0 || current.reads == 0) return false;
  const Wide after = static_cast<Wide>(update.store_bytes) * current.reads * kPermilleInOne;
  const Wide before = static_cast<Wide>(current.store_bytes) * update.reads;
  const Wide permille = static_cast<Wide>(update.read_bytes) * current.reads;
  return after > before * kWorsePermille && after > before * kPermilleInOne + permille;
}

bool IsMoreBy(std::uint64_t now, std::uint64_t before, std::uint64_t millionths) {
  return static_cast<Wide>(now) * kMillion > static_cast<Wide>(before) * (kMillion + millionths);
}

std::uint64_t LeastWorseTenths(ByteCount mean_sample_bytes) {
  return MulDiv(mean_sample_bytes, kNoisePermille * 10, kPermilleInOne);
}

}  // namespace optcache::coordination
