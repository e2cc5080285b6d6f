// handoff_test_server --socket PATH --folder FOLDER: serves the folder's files as a sidecar would,
// until standard input ends.

#include <poll.h>

#include <array>
#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "support/handoff_server.h"

namespace optcache {
namespace {

constexpr int kPollMs = 10;

struct Flags {
  std::string socket;
  ByteCount arena = 64_MiB;
  int delay_ms = 0;
  int open_delay_ms = 0;
  HandoffServerOptions server;
};

Status Run(const Flags& flags) {
  const Clock& clock = SystemClock();
  ASSIGN_OR_RETURN(handoff::Arena arena, handoff::Arena::Create(flags.arena));
  ASSIGN_OR_RETURN(const auto server, HandoffServer::Make(flags.server, std::move(arena), clock));
  ASSIGN_OR_RETURN(const auto channel,
                   handoff::ChannelServer::Listen({.path = flags.socket,
                                                   .arena_fd = server->arena().fd(),
                                                   .arena_size = server->arena().size()},
                                                  clock, *server));
  server->Serve(*channel);
  std::puts("{\"event\": \"ready\"}");
  std::fflush(stdout);
  while (true) {
    std::array<pollfd, 2> ready{{{.fd = channel->poll_fd(), .events = POLLIN, .revents = 0},
                                 {.fd = 0, .events = POLLIN, .revents = 0}}};
    ::poll(ready.data(), ready.size(), kPollMs);
    if (ready[1].revents != 0) return OkStatus();
    channel->ProcessReady();
    channel->Tick();
    server->RunDue();
  }
}

}  // namespace
}  // namespace optcache

int main(int argc, char** argv) {
  optcache::Flags flags;
  CLI::App app("Serves a folder's files through a hand-over socket, for tests");
  app.add_option("--socket", flags.socket)->required();
  app.add_option("--folder", flags.server.folder)->required();
  app.add_option("--arena", flags.arena, "bytes");
  app.add_option("--delay-ms", flags.delay_ms, "before each answer");
  app.add_option("--open-delay-ms", flags.open_delay_ms, "until the dataset is there");
  app.add_option("--stand-in", flags.server.stand_in, "a sample that is said to be another");
  app.add_flag("--stage", flags.server.stage, "lay all samples into the arena at the start");
  app.add_flag("--quiet", flags.server.quiet, "report nothing but that it is ready");
  CLI11_PARSE(app, argc, argv);
  flags.server.delay = std::chrono::milliseconds(flags.delay_ms);
  flags.server.open_delay = std::chrono::milliseconds(flags.open_delay_ms);
  optcache::SetUpLog("handoff_test_server", optcache::LogLevel::kInfo, optcache::LogFormat::kText);
  const optcache::Status status = optcache::Run(flags);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
