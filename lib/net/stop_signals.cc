#include "net/stop_signals.h"

#include <sys/signalfd.h>

#include <csignal>
#include <initializer_list>
#include <utility>

#include "base/check.h"

namespace optcache::net {
namespace {

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals)
    sigaddset(&set, signal);
  return set;
}

}  // namespace

void BlockStopSignals() {
  const sigset_t blocked = SetOf({SIGTERM, SIGINT, SIGHUP, SIGPIPE});
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

StopSignals::StopSignals(EventLoop& loop, std::function<void()> on_stop) {
  const sigset_t awaited = SetOf({SIGTERM, SIGINT, SIGHUP});
  signals_ = UniqueFd(::signalfd(-1, &awaited, SFD_CLOEXEC | SFD_NONBLOCK));
  CHECK(signals_.valid());  // without a descriptor for this there is none to work with
  watch_ = loop.WatchReadable(signals_.get(), [this, stop = std::move(on_stop)] {
    const std::function<void()> call = stop;  // the watch ends, and with it what it holds
    watch_.Cancel();
    call();
  });
}

}  // namespace optcache::net
