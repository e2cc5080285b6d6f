// Judges the facts, one function for each thing that was looked at.
//
// A finding is fine, a warning or a fault, and says what to do. The order of the findings is fixed,
// from the machine to the cache.

#include "cli/doctor/doctor_findings.h"

#include <utility>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

Finding FindingOnMemory(const DoctorFacts& facts) {
  const std::string there =
      fmt::format("{} has {}, of which {} are free", facts.memory.limited_by,
                  FormatBytes(facts.memory.bytes), FormatBytes(facts.memory_free));
  if (facts.memory_wanted <= facts.memory_free) return Fine("memory", there);
  const bool never = facts.memory_wanted > facts.memory.bytes;
  return {.severity = never ? Severity::kFault : Severity::kWarning,
          .about = "memory",
          .what = fmt::format("{}; the cache takes {}", there, FormatBytes(facts.memory_wanted)),
          .to_do = never ? "Give the cache less: --memory, --arena or the capacity of the Datasets."
                         : "End other programs on this machine, or give the cache less: "
                           "--memory, --arena or the capacity of the Datasets."};
}

Finding FindingOnSharedMemory(const DoctorFacts& facts) {
  if (!facts.shared_size || !facts.shared_free) {
    return {
        .severity = Severity::kWarning,
        .about = "/dev/shm",
        .what = "it is not there",
        .to_do =
            "Mount a tmpfs at /dev/shm: workers of a PyTorch DataLoader pass batches through it."};
  }
  const std::string there =
      fmt::format("it has {}, of which {} are free", FormatBytes(*facts.shared_size),
                  FormatBytes(*facts.shared_free));
  if (*facts.shared_free >= kLeastSharedMemory) return Fine("/dev/shm", there);
  const std::string mend =
      *facts.shared_size < kLeastSharedMemory
          ? fmt::format("Make it {} or larger, for example with docker run --shm-size=1g.",
                        FormatBytes(kLeastSharedMemory))
          : "Remove the files that programs which have ended left there: ls -lS /dev/shm. If "
            "programs that run need them, make it larger.";
  return {.severity = Severity::kWarning,
          .about = "/dev/shm",
          .what = there,
          .to_do =
              "Workers of a PyTorch DataLoader pass batches through it, and end with a bus error "
              "if it is full. " +
              mend + " The arena of a sidecar is not there."};
}

Finding FindingOnOpenFiles(const DoctorFacts& facts) {
  if (!facts.open_files) return Fine("open files", "the limit cannot be read");
  const std::string there = fmt::format("a process may open {}", *facts.open_files);
  if (*facts.open_files >= kLeastOpenFiles) return Fine("open files", there);
  return {.severity = Severity::kWarning,
          .about = "open files",
          .what = there,
          .to_do = fmt::format("Each connection of a training process takes one. Raise the hard "
                               "limit to {} or more: ulimit -Hn.",
                               kLeastOpenFiles)};
}

Finding FindingOnSocket(const DoctorFacts& facts) {
  const auto fault = [&](std::string_view what, std::string_view to_do) {
    return Finding{.severity = Severity::kFault,
                   .about = "sidecar's socket",
                   .what = fmt::format("{}: {}", facts.socket, what),
                   .to_do = std::string(to_do)};
  };
  switch (facts.socket_state) {
    case SocketState::kNotNamed:
      return {.severity = Severity::kWarning,
              .about = "sidecar's socket",
              .what = "OPTCACHE_SOCKET is not set, so training from this shell finds no cache",
              .to_do =
                  "Paste the line `export OPTCACHE_SOCKET=...` that `optcache up` prints, or "
                  "set --socket."};
    case SocketState::kMissing:
      return fault("there is no socket",
                   "Start `optcache up`, and paste the line that it prints: the path differs "
                   "between state folders.");
    case SocketState::kForbidden:
      return fault("this user may not reach it",
                   "Start `optcache up` as this user, or with --allow-uid and a --socket-dir that "
                   "this user can reach.");
    case SocketState::kRefused:
      return fault("no process listens there",
                   "The sidecar has ended. Start `optcache up` again; its log is in the folder "
                   "logs of the state folder.");
    case SocketState::kSilent:
      return fault("a process listens and does not answer",
                   "The sidecar is stopped or stuck. Look at its log in the folder logs of the "
                   "state folder, and start `optcache up` again.");
    case SocketState::kTurnsAway:
      return fault("the sidecar answers with an error: " + facts.socket_error,
                   "Do what the error says. The sidecar's log is in the folder logs of the state "
                   "folder.");
    case SocketState::kAnswers:
      break;
  }
  return Fine("sidecar's socket", facts.socket + ": a sidecar answers");
}

Finding FindingOnNoCache(const Status& why) {
  if (why.code() == Code::kNotFound) {
    return {.severity = Severity::kWarning,
            .about = "running cache",
            .what = why.message(),
            .to_do = "Start `optcache up`, or name its state folder with --state."};
  }
  if (why.code() == Code::kPermissionDenied) {
    return {.severity = Severity::kFault,
            .about = "running cache",
            .what = why.message(),
            .to_do =
                "Run `optcache doctor` as that user, or name a cache of yours with --state or, if "
                "it is set, OPTCACHE_COORDINATOR, which wins."};
  }
  return {
      .severity = Severity::kFault,
      .about = "running cache",
      .what = why.message(),
      .to_do =
          "Look at what `optcache up` printed, and at the folder logs of its state folder, and "
          "start it again if it has ended. If OPTCACHE_COORDINATOR is set, the coordinator that "
          "it names is asked, and not that of --state: unset it if it names another."};
}

void AddFindingsOnCache(const DoctorFacts& facts, std::vector<Finding>& findings) {
  if (!facts.cache.ok()) findings.push_back(FindingOnNoCache(facts.cache));
  for (const PageFact& page : facts.pages) {
    if (page.error.empty()) {
      findings.push_back(Fine(page.part, page.url + " answers"));
      continue;
    }
    findings.push_back({.severity = Severity::kFault,
                        .about = page.part,
                        .what = fmt::format("{} does not answer: {}", page.url, page.error),
                        .to_do =
                            "Look at its log in the folder logs of the state folder. `optcache "
                            "up` starts a part that has ended again."});
  }
  if (!facts.looks.empty()) findings.push_back(FindingOnLimit(LimitOf(facts.looks)));
}

Finding FindingOnClock(const DoctorFacts& facts) {
  if (!facts.clock_is_set) return Fine("clock", "the system does not say whether it is set");
  if (*facts.clock_is_set) return Fine("clock", "a time server sets it");
  return {.severity = Severity::kWarning,
          .about = "clock",
          .what = "no time server sets it",
          .to_do =
              "Compare it with another clock. Buckets refuse requests if the clock is 15 minutes "
              "off, and certificates are valid from a time until a time. To have it set, run: "
              "timedatectl set-ntp true."};
}

}  // namespace

std::vector<Finding> FindingsOf(const DoctorFacts& facts) {
  std::vector<Finding> findings = {FindingOnMemory(facts), FindingOnSharedMemory(facts),
                                   FindingOnOpenFiles(facts), FindingOnClock(facts),
                                   FindingOnSocket(facts)};
  AddFindingsOnCache(facts, findings);
  return findings;
}

}  // namespace optcache::cli
