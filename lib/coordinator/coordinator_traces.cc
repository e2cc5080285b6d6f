// Lists of ids that ranks hand over: which are wanted, and what plans go by them.

#include <algorithm>
#include <utility>

#include "coordinator/coordinator.h"

namespace optcache::coordination {

Coordinator::DatasetEntry* Coordinator::DatasetOf(const StreamReport& report) {
  const std::vector<DatasetEntry*> manifests = ManifestsOf(report.dataset);
  const auto found = std::ranges::find_if(manifests, [&](const DatasetEntry* manifest) {
    return manifest->spec.key == report.dataset_key;
  });
  return found == manifests.end() ? nullptr : *found;
}

// Some at once, while there is room for more.
std::vector<std::string> Coordinator::TracesWanted(const Report& report, MemberId member) {
  std::vector<std::string> wanted;
  for (const StreamReport& stream : report.streams) {
    DatasetEntry* dataset = nullptr;
    for (const RankReport& rank : stream.ranks) {
      if (rank.traces.empty()) continue;
      if (dataset == nullptr) dataset = DatasetOf(stream);
      if (dataset == nullptr || dataset->spec.retention != Retention::kOptimal) break;
      const auto known = dataset->streams.find(stream.id);
      if (known == dataset->streams.end()) break;
      for (const PassTrace& trace : rank.traces) {
        if (wanted.size() == kMaxTracesWanted) return wanted;
        const bool lacks = trace.pass >= known->second.LowestPass() &&
                           known->second.NamedBy(member, trace.digest) &&
                           !dataset->traces.Has(trace.digest) &&
                           !dataset->traces.Refused(trace.digest);
        if (!lacks || TraceBytesHeld() + kMaxTraceBytes > kMaxTraceBytesInAll) continue;
        wanted.push_back(trace.digest);
      }
    }
  }
  return wanted;
}

std::size_t Coordinator::TraceBytesHeld() const {
  std::size_t sum = 0;
  for (const auto& [id, dataset] : datasets_)
    sum += dataset.traces.bytes_held();
  return sum;
}

Status Coordinator::OnTrace(std::string_view node, std::string_view digest, std::string bytes) {
  if (bytes.size() > kMaxTraceBytes || TraceBytesHeld() + bytes.size() > kMaxTraceBytesInAll) {
    return {Code::kResourceExhausted,
            "a list of " + std::to_string(bytes.size()) + " bytes: there is no room for it"};
  }
  const MemberEntry* const member = MemberNamed(node);
  for (auto& [id, dataset] : datasets_) {
    if (member == nullptr || dataset.traces.Has(digest)) continue;
    for (const auto& [stream_id, stream] : dataset.streams) {
      if (stream.NamedBy(member->member.id, digest)) {
        return dataset.traces.Take(digest, std::move(bytes), dataset.spec.samples);
      }
    }
  }
  return {Code::kConflict, "the list " + std::string(digest) + " is not wanted"};
}

std::shared_ptr<const std::string> Coordinator::TraceBytes(std::string_view digest) const {
  for (const auto& [id, dataset] : datasets_) {
    if (auto bytes = dataset.traces.Bytes(digest)) return bytes;
  }
  return nullptr;
}

void Coordinator::FollowTraces(DatasetEntry& dataset) {
  std::map<StreamId, NamedTraces> named;
  for (const auto& [id, stream] : dataset.streams) {
    if (NamedTraces traces = stream.Traces(); !traces.empty()) named.emplace(id, std::move(traces));
  }
  if (named.empty() && dataset.traces.empty()) return;
  dataset.traces.Update(named, dataset.planned_streams, dataset.spec.samples);
}

// The plan in force without lists that no rank reads any more: their end asks for no other plan.
std::vector<StreamState> Coordinator::StillPlanned(const DatasetEntry& dataset) {
  std::vector<StreamState> streams = dataset.planned_streams;
  for (StreamState& stream : streams) {
    const auto tracked = dataset.streams.find(stream.id);
    if (tracked == dataset.streams.end() || stream.traces.empty()) continue;
    std::erase_if(stream.traces, [lowest = tracked->second.LowestPass()](const PassTrace& trace) {
      return trace.pass < lowest;
    });
  }
  return streams;
}

// Where the plan that is due decides from. What was read of a pass before its list was here has no
// decision yet: this plan makes one.
Cut Coordinator::CutOf(const DatasetEntry& dataset, const StreamState& stream) {
  const TrackedStream& tracked = dataset.streams.at(stream.id);
  const auto before = std::ranges::find(dataset.planned_streams, stream.id, &StreamState::id);
  const bool is_planned =
      before != dataset.planned_streams.end() && before->generation == stream.generation;
  Cut cut = is_planned ? tracked.Frontier() : tracked.FirstCut();
  if (stream.traces.empty()) return cut;
  const bool has_decisions =
      is_planned &&
      std::ranges::find(before->traces, cut.pass, &PassTrace::pass) != before->traces.end();
  if (is_planned && !has_decisions && !tracked.IsPlannedIn(cut.pass)) cut.position = 0;
  return std::max(cut, Cut{.pass = stream.traces.front().pass, .position = 0});
}

}  // namespace optcache::coordination
