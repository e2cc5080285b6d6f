// Looks at the machine and at a running cache, and reports what it saw without a judgement.
//
// Nothing here fails: what cannot be seen is left unset, and a cache that cannot be asked is a
// Status among the facts. The sidecar's socket is asked with a Hello, as a client would, and each
// answer has its state. What the facts mean is in doctor_findings.h.

#include "cli/doctor/doctor_facts.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "cli/explain/page_looks.h"
#include "cli/local/coordinator_status.h"
#include "cli/local/fetch_pages.h"
#include "cli/local/state_dir.h"
#include "coordination/status.h"
#include "handoff/codec.h"
#include "handoff/layout.h"
#include "handoff/socket.h"

namespace optcache::cli {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";

void LookAtSharedMemory(DoctorFacts& facts) {
  struct statvfs room = {};
  if (::statvfs(kSharedMemory, &room) != 0) return;
  facts.shared_size = ByteCount{room.f_blocks} * room.f_frsize;
  facts.shared_free = ByteCount{room.f_bavail} * room.f_frsize;
}

std::optional<std::uint64_t> OpenFilesLimit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return limit.rlim_max;
}

std::optional<bool> ClockIsSet() {
  timex state = {};  // asks, and changes nothing
  const int clock = ::adjtimex(&state);
  if (clock < 0) return std::nullopt;
  return clock != TIME_ERROR;
}

std::vector<std::string> UrlsOf(const std::vector<PageFact>& pages) {
  std::vector<std::string> urls;
  for (const PageFact& page : pages)
    urls.push_back(page.url);
  return urls;
}

void LookAtNodes(std::vector<PageFact> nodes, DoctorFacts& facts) {
  const std::vector<Result<FetchedPage>> answers = FetchPages(UrlsOf(nodes), kDoctorPatience);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!answers[i]) nodes[i].error = answers[i].error().message();
    facts.pages.push_back(std::move(nodes[i]));
  }
}

void LookAtSidecars(std::vector<PageFact> sidecars, DoctorFacts& facts) {
  std::vector<Result<PageLooks>> looks = LookTwice(UrlsOf(sidecars), kDoctorPatience);
  for (std::size_t i = 0; i < sidecars.size(); ++i) {
    if (looks[i]) {
      facts.looks.push_back(*std::move(looks[i]));
    } else {
      sidecars[i].error = looks[i].error().message();
    }
    facts.pages.push_back(std::move(sidecars[i]));
  }
}

// kNotFound: none runs. Every other error names the coordinator or the state folder.
Result<coordination::ClusterStatus> StatusOfCache(const std::string& state_dir) {
  const Result<std::string> address = FindCoordinator("", state_dir);
  if (!address && address.error().code() == Code::kNotFound)
    return Error(Code::kNotFound, "`optcache up` does not run in " + state_dir);
  if (!address) return Error(address.error());
  ASSIGN_OR_RETURN(CoordinatorAnswer answer, AskCoordinator(*address));
  return std::move(answer.status);
}

void LookAtCache(const std::string& state_dir, DoctorFacts& facts) {
  const Result<coordination::ClusterStatus> status = StatusOfCache(state_dir);
  if (!status) {
    facts.cache = status.error();
    return;
  }
  const auto pages_of = [](const auto& parts) {
    std::vector<PageFact> pages;
    for (const auto& part : parts) {
      if (!part.metrics.empty())
        pages.push_back({.part = part.name, .url = part.metrics, .error = ""});
    }
    return pages;
  };
  LookAtNodes(pages_of(status->members), facts);
  LookAtSidecars(pages_of(status->sidecars), facts);
}

SocketState WhyNotConnected(const Status& not_connected) {
  switch (not_connected.code()) {
    case Code::kPermissionDenied:
      return SocketState::kForbidden;
    case Code::kDeadlineExceeded:
      return SocketState::kSilent;
    case Code::kUnavailable:
      return SocketState::kRefused;
    default:
      return SocketState::kMissing;
  }
}

bool WaitToRead(int fd, const Deadline& deadline) {
  pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
  const Duration left = deadline.Remaining(SystemClock().Now());
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return ::poll(&waited, 1, static_cast<int>(ms)) == 1;
}

// False: fewer come in time.
bool ReceiveAll(int fd, std::span<std::byte> bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    if (!WaitToRead(fd, deadline)) return false;
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

// Of an Error frame (docs/formats/handoff.md), whose body is a code and a string.
SocketAnswer ReceiveError(int fd, const Deadline& deadline) {
  std::array<std::byte, sizeof(std::uint8_t) + sizeof(std::uint16_t)> start = {};
  if (!ReceiveAll(fd, start, deadline)) return {.state = SocketState::kSilent, .error = ""};
  std::uint16_t length = 0;
  std::memcpy(&length, start.data() + 1, sizeof length);
  std::string error(length, '\0');
  if (!ReceiveAll(fd, std::as_writable_bytes(std::span(error)), deadline))
    return {.state = SocketState::kSilent, .error = ""};
  if (static_cast<Code>(start[0]) == Code::kPermissionDenied)
    return {.state = SocketState::kForbidden, .error = ""};
  return {.state = SocketState::kTurnsAway, .error = std::move(error)};
}

}  // namespace

SocketAnswer AskSocket(const std::string& path, Duration patience) {
  if (path.empty()) return {.state = SocketState::kNotNamed, .error = ""};
  const Deadline deadline = Deadline::After(SystemClock(), patience);
  const Result<UniqueFd> socket = handoff::ConnectWithin(path, patience);
  if (!socket) return {.state = WhyNotConnected(socket.error()), .error = ""};
  const handoff::FrameBytes hello =
      handoff::EncodeClientFrame(1, handoff::Hello{.pid = static_cast<std::uint32_t>(::getpid())});
  const auto sent = ::send(socket->get(), hello.data(), hello.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  handoff::FrameHeader header;
  if (sent != static_cast<ssize_t>(hello.size()) ||
      !ReceiveAll(socket->get(), std::as_writable_bytes(std::span(&header, 1)), deadline))
    return {.state = SocketState::kSilent, .error = ""};
  if (header.type == handoff::FrameType::kError) return ReceiveError(socket->get(), deadline);
  const bool is_welcome = header.type == handoff::FrameType::kWelcome;
  return {.state = is_welcome ? SocketState::kAnswers : SocketState::kSilent, .error = ""};
}

DoctorFacts GatherFacts(const DoctorQuestions& questions) {
  DoctorFacts facts;
  facts.memory = TotalMemory();
  facts.memory_free = AvailableMemory().bytes;
  facts.memory_wanted = questions.memory_wanted;
  LookAtSharedMemory(facts);
  facts.open_files = OpenFilesLimit();
  facts.clock_is_set = ClockIsSet();
  facts.socket = questions.socket;
  SocketAnswer answer = AskSocket(questions.socket, kDoctorPatience);
  facts.socket_state = answer.state;
  facts.socket_error = std::move(answer.error);
  LookAtCache(questions.state_dir, facts);
  return facts;
}

}  // namespace optcache::cli
