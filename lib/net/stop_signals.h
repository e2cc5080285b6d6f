#pragma once

// How a program ends: SIGTERM, SIGINT or SIGHUP (its terminal is closed) becomes an event of its
// loop.
//
//   int main() {
//     BlockStopSignals();
//     ...
//     const StopSignals signals(loop, [&] { server->Stop([&] { loop.Stop(); }); });
//     loop.Run();

#include <functional>

#include "base/unique_fd.h"
#include "net/event_loop.h"

namespace optcache::net {

// At the top of main, before any thread starts, so that all of them leave the signals to the loop.
// SIGPIPE is blocked, too: a peer that has gone is an error of the write.
void BlockStopSignals();

// Calls `on_stop` on the loop's thread at the first of these signals; later ones change nothing.
// Needs BlockStopSignals. Must not outlive the loop.
class StopSignals {
 public:
  StopSignals(EventLoop& loop, std::function<void()> on_stop);
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  UniqueFd signals_;
  Watch watch_;
};

}  // namespace optcache::net
