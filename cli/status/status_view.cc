// Writes the coordinator's status as tables, a section for each kind of thing.
//
// Columns and sections that would be empty everywhere are left out: disks, sidecars, notes.
// Manifests that retire stand as rows of their own, by the beginning of their digest, as they do in
// metrics.

#include "cli/status/status_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/terminal/text_table.h"
#include "cli/terminal/value_text.h"
#include "coordination/codec.h"

namespace optcache::cli {
namespace {

using coordination::ClusterStatus;
using coordination::DatasetStatus;
using coordination::MemberStatus;
using coordination::StreamStatus;
using Rows = std::vector<std::vector<std::string>>;

constexpr double kLateSeconds = 5;
constexpr std::ptrdiff_t kDiskColumns = 5;  // after USED; only where some node has a disk
constexpr std::size_t kDigestShown = 12;    // of a manifest that jobs still read, as in metrics

std::string PercentOf(std::optional<double> ratio) {
  return ratio ? PercentText(*ratio) : "-";
}

// 1234567 as 1,234,567.
std::string Grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;)
    text.insert(at -= 3, ",");
  return text;
}

std::string PlanOf(const DatasetStatus& dataset) {
  if (dataset.replanning) return "making";
  if (dataset.planned == coordination::Version{}) return "-";
  return coordination::FormatVersion(dataset.planned);
}

std::vector<std::string> RowOf(const DatasetStatus& dataset, std::string name) {
  return {std::move(name),
          Grouped(dataset.total_samples),
          FormatBytes(dataset.total_bytes),
          FormatBytes(dataset.capacity),
          FormatBytes(dataset.sum.used_bytes),
          std::string(coordination::RetentionName(dataset.retention)),
          PlanOf(dataset),
          PercentOf(dataset.ratios.predicted),
          PercentOf(dataset.ratios.observed),
          Grouped(dataset.sum.misses),
          FormatBytes(dataset.sum.moved_bytes)};
}

std::string FormatDatasets(const ClusterStatus& status) {
  Rows rows = {{"DATASET", "SAMPLES", "BYTES", "CAPACITY", "CACHED", "RETENTION", "PLAN VERSION",
                "PREDICTED", "OBSERVED", "STORE READS", "MOVED"}};
  for (const DatasetStatus& dataset : status.datasets)
    rows.push_back(RowOf(dataset, dataset.name));
  for (const DatasetStatus& dataset : status.retiring)
    rows.push_back(
        RowOf(dataset, dataset.name + "@" + dataset.manifest_digest.substr(0, kDigestShown)));
  return FormatTable(rows);
}

std::string FormatMembers(const ClusterStatus& status) {
  if (status.members.empty()) return "No node reports yet.\n";
  const bool disks = std::ranges::any_of(
      status.members, [](const auto& member) { return member.disk > 0 || member.disk_used > 0; });
  Rows rows = {{"NODE", "ID", "ADDRESS", "MEMORY", "USED", "STATE VERSION", "HEARD", "METRICS"}};
  for (const MemberStatus& member : status.members) {
    const bool late = member.silent_seconds > kLateSeconds;
    rows.push_back({member.name, std::to_string(member.id), member.address,
                    FormatBytes(member.capacity),
                    FormatBytes(member.used - std::min(member.used, member.disk_used)),
                    coordination::FormatVersion(member.applied),
                    late ? fmt::format("{:.0f} s ago", member.silent_seconds) : "now",
                    member.metrics.empty() ? "-" : member.metrics});
  }
  if (!disks) return FormatTable(rows);
  rows[0].insert(rows[0].begin() + kDiskColumns, {"DISK", "ON DISK"});
  for (std::size_t i = 0; i < status.members.size(); ++i) {
    const MemberStatus& member = status.members[i];
    rows[i + 1].insert(
        rows[i + 1].begin() + kDiskColumns,
        {member.disk > 0 ? FormatBytes(member.disk) : "-", FormatBytes(member.disk_used)});
  }
  return FormatTable(rows);
}

std::string FormatSidecars(const ClusterStatus& status) {
  Rows rows = {{"SIDECAR", "SOCKET", "METRICS"}};
  for (const coordination::SidecarStatus& sidecar : status.sidecars)
    rows.push_back({sidecar.name, sidecar.socket, sidecar.metrics});
  return rows.size() == 1 ? "" : FormatTable(rows) + "\n";
}

std::string RanksOf(const StreamStatus& stream) {
  std::string text = fmt::format("{}/{}", stream.ranks, stream.world);
  if (stream.ranks_lost > 0) text += fmt::format(", {} lost", stream.ranks_lost);
  return text;
}

std::vector<StreamStatus> StreamsOf(const std::vector<DatasetStatus>& datasets) {
  std::vector<StreamStatus> streams;
  for (const DatasetStatus& dataset : datasets)
    streams.insert(streams.end(), dataset.streams.begin(), dataset.streams.end());
  return streams;
}

std::string FormatStreams(const ClusterStatus& status) {
  Rows rows = {{"STREAM", "RANKS", "PASS", "DONE", "RATE", "ORDER", "PLANNED"}};
  for (const auto* list : {&status.datasets, &status.retiring}) {
    for (const StreamStatus& stream : StreamsOf(*list)) {
      const double done = stream.length == 0 ? 0
                                             : static_cast<double>(stream.position) /
                                                   static_cast<double>(stream.length);
      rows.push_back({fmt::format("{}#{}", stream.name, stream.incarnation), RanksOf(stream),
                      std::to_string(stream.pass), PercentText(done),
                      stream.rate > 0 ? fmt::format("{:.0f}/s", stream.rate) : "-",
                      stream.order_known ? "known" : "unknown", stream.planned ? "yes" : "no"});
    }
  }
  return rows.size() == 1 ? "No training job is attached.\n" : FormatTable(rows);
}

// What needs somebody's attention.
std::string FormatNotes(const ClusterStatus& status) {
  std::string text;
  for (const DatasetStatus& dataset : status.datasets) {
    for (const std::string& note : dataset.notes)
      text += dataset.name + ": " + note + "\n";
    for (const StreamStatus& stream : dataset.streams) {
      if (stream.conflict.empty()) continue;
      text += fmt::format("{}: the ranks of {} disagree on {}; its order is not known\n",
                          dataset.name, stream.name, stream.conflict);
    }
  }
  return text;
}

}  // namespace

std::string FormatStatus(const ClusterStatus& status, const std::string& savings) {
  std::string text = FormatDatasets(status) + "\n" + FormatMembers(status) + "\n" +
                     FormatSidecars(status) + FormatStreams(status);
  if (!savings.empty()) text += "\n" + savings;
  if (const std::string notes = FormatNotes(status); !notes.empty()) text += "\n" + notes;
  return text;
}

std::string FormatStatusLine(const ClusterStatus& status) {
  std::string text = fmt::format("nodes {}", status.members.size());
  for (const DatasetStatus& dataset : status.datasets) {
    text += fmt::format("; {}: streams {}, hits {} (predicted {}), store reads {}, moved {}",
                        dataset.name, dataset.streams.size(), PercentOf(dataset.ratios.observed),
                        PercentOf(dataset.ratios.predicted), Grouped(dataset.sum.misses),
                        FormatBytes(dataset.sum.moved_bytes));
  }
  return text;
}

}  // namespace optcache::cli
