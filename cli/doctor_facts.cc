#include "cli/doctor_facts.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "cli/coordinator_status.h"
#include "cli/state_dir.h"
#include "coordination/status.h"
#include "handoff/codec.h"
#include "handoff/layout.h"
#include "handoff/socket.h"
#include "net/http_client.h"

namespace optcache::cli {
namespace {

constexpr const char* kSharedMemory = "/dev/shm";
constexpr std::uint16_t kOk = 200;

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

// Asks all of them at once.
void LookAtPages(std::vector<PageFact>& pages) {
  if (pages.empty()) return;
  net::EventLoop loop;
  const std::unique_ptr<net::HttpClient> client =
      net::MakeHttpClient(loop, {.max_in_flight = pages.size()});
  std::size_t missing = pages.size();
  for (PageFact& page : pages) {
    client->Send({.url = page.url}, kDoctorPatience, [&](Result<net::HttpResponse> response) {
      if (!response) {
        page.error = response.error().message();
      } else if (response->status != kOk) {
        page.error = "status " + std::to_string(response->status);
      }
      if (--missing == 0) loop.Stop();
    });
  }
  loop.Run();
}

Result<coordination::ClusterStatus> StatusOfCache(const std::string& state_dir) {
  const Result<std::string> address = FindCoordinator("", state_dir);
  if (!address && address.error().code() == Code::kNotFound)
    return Error(Code::kNotFound, "`optcache up` does not run in " + state_dir);
  if (!address) return Error(address.error());
  ASSIGN_OR_RETURN(const std::string json, FetchStatus(*address));
  return coordination::ParseClusterStatus(json);
}

void LookAtCache(const std::string& state_dir, DoctorFacts& facts) {
  const Result<coordination::ClusterStatus> status = StatusOfCache(state_dir);
  if (!status) {
    facts.cache_error = status.error().message();
    return;
  }
  const auto add = [&](std::string part, const std::string& url) {
    if (!url.empty()) facts.pages.push_back({.part = std::move(part), .url = url, .error = ""});
  };
  for (const coordination::MemberStatus& member : status->members)
    add("node " + member.name, member.metrics);
  for (const coordination::SidecarStatus& sidecar : status->sidecars)
    add("sidecar " + sidecar.name, sidecar.metrics);
  LookAtPages(facts.pages);
}

bool WaitToRead(int fd, Duration patience) {
  pollfd waited{.fd = fd, .events = POLLIN, .revents = 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  return ::poll(&waited, 1, static_cast<int>(ms)) == 1;
}

}  // namespace

SocketState AskSocket(const std::string& path, Duration patience) {
  if (path.empty()) return SocketState::kNotNamed;
  const Result<UniqueFd> socket = handoff::ConnectTo(path);
  if (!socket) {
    const Code code = socket.error().code();
    if (code == Code::kPermissionDenied) return SocketState::kForbidden;
    return code == Code::kUnavailable ? SocketState::kRefused : SocketState::kMissing;
  }
  const handoff::FrameBytes hello =
      handoff::EncodeClientFrame(1, handoff::Hello{.pid = static_cast<std::uint32_t>(::getpid())});
  const auto sent = ::send(socket->get(), hello.data(), hello.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(hello.size()) || !WaitToRead(socket->get(), patience))
    return SocketState::kSilent;
  handoff::FrameHeader header;
  if (::recv(socket->get(), &header, sizeof header, MSG_DONTWAIT) !=
      static_cast<ssize_t>(sizeof header))
    return SocketState::kSilent;
  // A sidecar that is not for this user says so.
  if (header.type == handoff::FrameType::kError) return SocketState::kForbidden;
  return header.type == handoff::FrameType::kWelcome ? SocketState::kAnswers : SocketState::kSilent;
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
  facts.socket_state = AskSocket(questions.socket, kDoctorPatience);
  LookAtCache(questions.state_dir, facts);
  return facts;
}

}  // namespace optcache::cli
