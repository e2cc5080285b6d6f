#include "cli/explain/reader_finding.h"

#include <utility>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

constexpr std::size_t kMaxReadersShown = 8;

std::string RanksText(const ReaderFact& reader) {
  if (!reader.world)
    return fmt::format("{} {}", reader.ranks, reader.ranks == 1 ? "rank" : "ranks");
  return fmt::format("{} of {} ranks", reader.ranks, *reader.world);
}

}  // namespace

ReaderFact ReaderOf(const PlanJob& job) {
  return {.name = job.name,
          .ranks = job.ranks,
          .world = std::nullopt,
          .pass = job.pass,
          .done = ShareOfPass(job),
          .rate = job.rate,
          .order_known = job.planned,
          .conflict = "",
          .differs = ""};
}

ReaderFact ReaderOf(const coordination::StreamStatus& stream) {
  const double done = stream.length == 0 ? 0
                                         : 100 * static_cast<double>(stream.position) /
                                               static_cast<double>(stream.length);
  return {.name = stream.name,
          .ranks = stream.ranks,
          .world = stream.world,
          .lost = stream.ranks_lost,
          .pass = stream.pass,
          .done = stream.length == 0 ? "" : fmt::format("{:.0f} %", done),
          .rate = stream.rate > 0 ? fmt::format("{:.1f}", stream.rate) : "",
          .order_known = stream.order_known && stream.conflict.empty(),
          .conflict = stream.conflict,
          .differs = stream.differs};
}

Finding FindingOnReader(const ReaderFact& reader) {
  const std::string about = "stream " + reader.name;
  std::string text =
      fmt::format("{}, in pass {}{}{}", RanksText(reader), reader.pass,
                  reader.done.empty() ? "" : " (" + reader.done + ")",
                  reader.rate.empty() ? "" : fmt::format(", {} samples/s", reader.rate));
  if (!reader.conflict.empty()) {
    return Warn(about,
                fmt::format("{}; its ranks disagree on {}, so its order is not known", text,
                            reader.conflict),
                "Give all ranks of the job the same seed and settings, and start it again.");
  }
  if (!reader.order_known) {
    return Warn(about, text + "; its order is not known, so it is cached without a plan",
                "Call attach(loader) of optcache.torch in each rank, or announce the order with "
                "optcache.announce. Give all ranks the same seed and settings.");
  }
  if (reader.lost > 0) {
    return Warn(about, fmt::format("{}; {} of them are not heard of any more", text, reader.lost),
                "Look at the processes of these ranks. If they ended on purpose, wait: they are "
                "forgotten soon.");
  }
  if (reader.world && reader.ranks < *reader.world) {
    return Warn(about, text + "; the others are missing, so its reads are not planned yet",
                "Look for ranks that have not started or have not called attach(loader) yet.");
  }
  if (!reader.differs.empty()) {
    return Warn(about, fmt::format("{}; it differs from its CachePlan: {}", text, reader.differs),
                "Correct spec.jobs of the CachePlan, or the settings of the job. What the job "
                "announces is in force.");
  }
  return Fine(about, text + "; its order is known");
}

void AddFindingsOnReaders(const std::vector<ReaderFact>& readers, std::vector<Finding>& findings) {
  std::size_t fine = 0;
  for (const ReaderFact& reader : readers) {
    Finding finding = FindingOnReader(reader);
    if (finding.severity == Severity::kOk && ++fine > kMaxReadersShown) continue;
    findings.push_back(std::move(finding));
  }
  if (fine > kMaxReadersShown) {
    findings.push_back(Fine("streams", fmt::format("{} more read it, and their orders are known",
                                                   fine - kMaxReadersShown)));
  }
}

}  // namespace optcache::cli
