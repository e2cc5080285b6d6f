#include "sidecar/programs/warm_choice.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include <fmt/format.h>

namespace optcache::sidecar {
namespace {

constexpr std::uint32_t kNoPart = std::numeric_limits<std::uint32_t>::max();
// Each fills what the one before has left; what a few leave is next to nothing.
constexpr int kRounds = 8;

// All samples, each once.
Result<std::vector<SampleId>> EachOnce(const DatasetPort& dataset,
                                       std::span<const SampleId> order) {
  const SampleId count = dataset.samples();
  std::vector<bool> named(count, false);
  std::vector<SampleId> ids;
  ids.reserve(count);
  const auto add = [&](SampleId id) {
    if (named[id]) return;
    named[id] = true;
    ids.push_back(id);
  };
  for (const SampleId id : order) {
    if (id >= count) {
      return Error(Code::kInvalidArgument, fmt::format("the order names sample {}, and {} has {}",
                                                       id, dataset.name(), count));
    }
    add(id);
  }
  for (SampleId id = 0; id < count; ++id)
    add(id);
  return ids;
}

// The room that is left in all parts.
class Room {
 public:
  explicit Room(std::span<const WarmPart> parts) {
    for (std::uint32_t part = 0; part < parts.size(); ++part) {
      left_.emplace(parts[part].room, part);
      all_ += static_cast<double>(parts[part].room);
    }
  }
  // All of it; a number, as parts without a limit have no sum that fits into bytes.
  double all() const { return all_; }
  ByteCount most() const { return left_.top().first; }
  // The part that has most, which must be enough.
  std::uint32_t Take(ByteCount size) {
    const auto [bytes, part] = left_.top();
    left_.pop();
    left_.emplace(bytes - size, part);
    all_ -= static_cast<double>(size);
    return part;
  }

 private:
  std::priority_queue<std::pair<ByteCount, std::uint32_t>> left_;
  double all_ = 0;
};

// Of the samples that have no part and would fit into one, as many as there is room for in all,
// spread evenly.
std::vector<SampleId> PickEvenly(const DatasetPort& dataset, std::span<const SampleId> ids,
                                 const Room& room, const std::vector<std::uint32_t>& part_of) {
  const auto is_candidate = [&](SampleId id) {
    return part_of[id] == kNoPart && dataset.SizeOf(id) <= room.most();
  };
  double total = 0;
  for (const SampleId id : ids) {
    if (is_candidate(id)) total += static_cast<double>(dataset.SizeOf(id));
  }
  const double share = total > room.all() ? room.all() / total : 1;
  std::vector<SampleId> picked;
  double due = 0;  // bytes that should have been picked by now, and were not
  for (const SampleId id : ids) {
    if (!is_candidate(id)) continue;
    const auto size = static_cast<double>(dataset.SizeOf(id));
    due += size * share;
    if (size > due + 0.5) continue;  // half a byte: the sum of shares is not exact
    due -= size;
    picked.push_back(id);
  }
  return picked;
}

// Large ones first: what finds no room at the end is small. Whether any found some.
bool Pack(const DatasetPort& dataset, std::vector<SampleId> picked, Room& room,
          std::vector<std::uint32_t>& part_of) {
  std::ranges::stable_sort(picked, std::greater<>(),
                           [&](SampleId id) { return dataset.SizeOf(id); });
  bool any = false;
  for (const SampleId id : picked) {
    const ByteCount size = dataset.SizeOf(id);
    if (size > room.most()) continue;
    part_of[id] = room.Take(size);
    any = true;
  }
  return any;
}

}  // namespace

Result<WarmPart> ParseWarmPart(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Error(Code::kInvalidArgument,
                 fmt::format("--part {}: NODE=BYTES, for example node1=12Mi", text));
  }
  ASSIGN_OR_RETURN(const ByteCount room, ParseQuantity(text.substr(equals + 1)));
  return WarmPart{.node = std::string(text.substr(0, equals)), .room = room};
}

Result<std::vector<std::vector<SampleId>>> ChooseWarm(const DatasetPort& dataset,
                                                      std::span<const SampleId> order,
                                                      std::span<const WarmPart> parts) {
  ASSIGN_OR_RETURN(const std::vector<SampleId> ids, EachOnce(dataset, order));
  std::vector<std::vector<SampleId>> chosen(parts.size());
  if (parts.empty()) return chosen;
  Room room(parts);
  std::vector<std::uint32_t> part_of(ids.size(), kNoPart);
  for (int round = 0; round < kRounds; ++round) {
    if (!Pack(dataset, PickEvenly(dataset, ids, room, part_of), room, part_of)) break;
  }
  for (const SampleId id : ids) {
    if (part_of[id] != kNoPart) chosen[part_of[id]].push_back(id);
  }
  return chosen;
}

}  // namespace optcache::sidecar
