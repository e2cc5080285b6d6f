#include "cli/doctor/doctor_findings.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace optcache::cli {
namespace {

DoctorFacts HealthyMachine() {
  return {.memory = {.bytes = 32_GiB, .limited_by = "the machine"},
          .memory_free = 20_GiB,
          .shared_size = 16_GiB,
          .shared_free = 15_GiB,
          .open_files = 1'048'576,
          .socket = "/run/optcache/sock",
          .socket_state = SocketState::kAnswers,
          .socket_error = "",
          .cache = {},
          .pages = {{.part = "node-0", .url = "http://127.0.0.1:1/metrics", .error = ""}},
          .clock_is_set = true};
}

// All that is not fine, each as "severity about: what".
std::vector<std::string> Wrong(const DoctorFacts& facts) {
  std::vector<std::string> wrong;
  for (const Finding& finding : FindingsOf(facts)) {
    if (finding.severity == Severity::kOk) continue;
    EXPECT_FALSE(finding.to_do.empty()) << finding.about;
    wrong.push_back((finding.severity == Severity::kFault ? "fault " : "warning ") + finding.about +
                    ": " + finding.what);
  }
  return wrong;
}

using Texts = std::vector<std::string>;

TEST(Doctor, FindsNothingWrongWithAHealthyMachine) {
  EXPECT_EQ(Wrong(HealthyMachine()), Texts{});
  EXPECT_FALSE(HasFault(FindingsOf(HealthyMachine())));
  EXPECT_EQ(FindingsOf(HealthyMachine()).size(), 6U);
}

TEST(Doctor, MemoryThatIsTakenIsAWarningAndMemoryThatIsNotThereAFault) {
  DoctorFacts facts = HealthyMachine();
  facts.memory_wanted = 20_GiB;
  EXPECT_EQ(Wrong(facts), Texts{});
  facts.memory_wanted = 24_GiB;
  EXPECT_EQ(Wrong(facts), Texts{"warning memory: the machine has 32.0 GiB, of which 20.0 GiB are "
                                "free; the cache takes 24.0 GiB"});
  facts.memory_wanted = 64_GiB;
  EXPECT_EQ(Wrong(facts), Texts{"fault memory: the machine has 32.0 GiB, of which 20.0 GiB are "
                                "free; the cache takes 64.0 GiB"});
  EXPECT_TRUE(HasFault(FindingsOf(facts)));
}

TEST(Doctor, SmallSharedMemoryAndFewOpenFilesAreWarnings) {
  DoctorFacts facts = HealthyMachine();
  facts.shared_size = facts.shared_free = 64_MiB;
  facts.open_files = 1024;
  EXPECT_EQ(Wrong(facts), (Texts{"warning /dev/shm: it has 64.0 MiB, of which 64.0 MiB are free",
                                 "warning open files: a process may open 1024"}));
  facts.shared_size.reset();
  EXPECT_EQ(Wrong(facts).front(), "warning /dev/shm: it is not there");
}

std::string WhatToDoAboutSharedMemory(ByteCount size) {
  DoctorFacts facts = HealthyMachine();
  facts.shared_size = size;
  facts.shared_free = 0;
  for (const Finding& finding : FindingsOf(facts)) {
    if (finding.about == "/dev/shm") return finding.to_do;
  }
  return "";
}

TEST(Doctor, SharedMemoryThatIsFullIsToBeEmptiedAndThatIsSmallToBeEnlarged) {
  EXPECT_TRUE(WhatToDoAboutSharedMemory(64_MiB).contains("Make it 256 MiB or larger"));
  EXPECT_TRUE(WhatToDoAboutSharedMemory(16_GiB).contains("Remove the files"));
  EXPECT_FALSE(WhatToDoAboutSharedMemory(16_GiB).contains("256"));
}

TEST(Doctor, TellsApartWhyASocketDoesNotAnswer) {
  DoctorFacts facts = HealthyMachine();
  const std::pair<SocketState, std::string> cases[] = {
      {SocketState::kMissing, "there is no socket"},
      {SocketState::kForbidden, "this user may not reach it"},
      {SocketState::kRefused, "no process listens there"},
      {SocketState::kSilent, "a process listens and does not answer"}};
  for (const auto& [state, what] : cases) {
    facts.socket_state = state;
    EXPECT_EQ(Wrong(facts), Texts{"fault sidecar's socket: /run/optcache/sock: " + what});
  }
  facts.socket_state = SocketState::kTurnsAway;
  facts.socket_error = "other versions";
  EXPECT_EQ(Wrong(facts), Texts{"fault sidecar's socket: /run/optcache/sock: the sidecar answers "
                                "with an error: other versions"});
  facts.socket_state = SocketState::kNotNamed;
  EXPECT_EQ(Wrong(facts), Texts{"warning sidecar's socket: OPTCACHE_SOCKET is not set, so training "
                                "from this shell finds no cache"});
}

TEST(Doctor, NamesThePageThatDoesNotAnswerAndTheCacheThatDoesNotRun) {
  DoctorFacts facts = HealthyMachine();
  facts.pages.push_back({.part = "sidecar-0", .url = "http://s/", .error = "refused"});
  EXPECT_EQ(Wrong(facts), Texts{"fault sidecar-0: http://s/ does not answer: refused"});
  facts.pages.clear();
  facts.cache = {Code::kNotFound, "none runs"};
  EXPECT_EQ(Wrong(facts), Texts{"warning running cache: none runs"});
  for (const Code code : {Code::kUnavailable, Code::kPermissionDenied, Code::kDeadlineExceeded}) {
    facts.cache = {code, "the coordinator at unix:/c"};
    EXPECT_EQ(Wrong(facts), Texts{"fault running cache: the coordinator at unix:/c"});
  }
}

TEST(Doctor, SaysWhatLimitsTrainingThatRuns) {
  DoctorFacts facts = HealthyMachine();
  const auto page = [](int waited) {
    return ParseMetrics(
        "optcache_loaders_attached 1\n" +
        fmt::format("optcache_client_samples_total{{source=\"peer\"}} {0}\n"
                    "optcache_client_wait_seconds_total {0}\n"
                    "optcache_client_wait_cause_seconds_total{{cause=\"network\"}} {0}\n",
                    waited));
  };
  facts.looks = {{.before = page(1), .after = page(2), .seconds = 2}};
  EXPECT_EQ(Wrong(facts),
            Texts{"warning limit: in 2.0 s, ranks read 0 samples/s and waited for 50 % of their "
                  "time (100 % of that for other nodes); the network between nodes limits it"});
  facts.looks.front().after = page(1);
  EXPECT_EQ(Wrong(facts), Texts{}) << "nothing is read";
}

TEST(Doctor, AClockThatNoServerSetsIsAWarning) {
  DoctorFacts facts = HealthyMachine();
  facts.clock_is_set = false;
  EXPECT_EQ(Wrong(facts), Texts{"warning clock: no time server sets it"});
  facts.clock_is_set.reset();
  EXPECT_EQ(Wrong(facts), Texts{});
}

}  // namespace
}  // namespace optcache::cli
