#include "cli/up/child_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/unique_fd.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

struct Pipe {
  Pipe() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reading = UniqueFd(ends[0]);
    writing = UniqueFd(ends[1]);
  }
  // Until every other holder of its end has closed it.
  std::string ReadAll() {
    writing.Reset();
    std::string text;
    char piece[4096];
    for (ssize_t count = 0; (count = ::read(reading.get(), piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<std::size_t>(count));
    return text;
  }
  UniqueFd reading;
  UniqueFd writing;
};

struct ChildEnd {
  std::string output;
  std::string error;
  std::string how;
};

// Runs a shell script until it ends.
ChildEnd RunScript(const std::string& script,
                   const std::map<std::string, std::string>& environment = {}) {
  Pipe output;
  Pipe error;
  const Result<pid_t> child = StartChild({.command = {"sh", "-c", script},
                                          .environment = environment,
                                          .output = output.writing.get(),
                                          .error = error.writing.get()});
  if (!child) return {.output = "", .error = "", .how = child.error().ToString()};
  ChildEnd end;
  {
    const std::jthread reader([&] { end.error = error.ReadAll(); });
    end.output = output.ReadAll();
  }
  int wait_status = 0;
  EXPECT_EQ(::waitpid(*child, &wait_status, 0), *child);
  end.how = HowItEnded(wait_status);
  return end;
}

TEST(StartChild, ReadsNothingFromItsStandardInput) {
  EXPECT_EQ(RunScript("wc -c; readlink /proc/self/fd/0").output, "0\n/dev/null\n");
}

TEST(StartChild, HasAProcessGroupOfItsOwn) {
  const ChildEnd end = RunScript("echo $$; cut -d' ' -f5 /proc/$$/stat");
  const pid_t pid = std::atoi(end.output.c_str());
  EXPECT_GT(pid, 0);
  EXPECT_EQ(std::atoi(end.output.c_str() + end.output.find('\n')), pid);
}

TEST(StartChild, DiesOfABrokenPipeAndBlocksNoSignal) {
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t unblocked;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGPIPE);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &unblocked);
  const ChildEnd pipe = RunScript("kill -PIPE $$");
  const ChildEnd term = RunScript("kill -TERM $$");
  ::pthread_sigmask(SIG_SETMASK, &unblocked, nullptr);
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_EQ(pipe.how, "signal 13");
  EXPECT_EQ(term.how, "signal 15");
}

// More than a pipe holds, so each write waits for the reader.
TEST(StartChild, KeepsTwoOutputsApartAndWhole) {
  const ChildEnd end = RunScript(
      "i=0; while [ $i -lt 4000 ]; do i=$((i + 1));"
      " printf '%063d\\n' $i; printf '%063d\\n' -$i >&2; done; exit 3");
  EXPECT_EQ(end.how, "exit status 3");
  ASSERT_EQ(end.output.size(), 256'000U);
  ASSERT_EQ(end.error.size(), 256'000U);
  for (int i = 1; i <= 4000; ++i) {
    const std::size_t line = 64 * static_cast<std::size_t>(i - 1);
    ASSERT_EQ(std::atoi(end.output.c_str() + line), i);
    ASSERT_EQ(std::atoi(end.error.c_str() + line), -i);
  }
}

TEST(StartChild, AddsToTheEnvironment) {
  ASSERT_EQ(::setenv("OPTCACHE_TEST_KEPT", "kept", 1), 0);
  ASSERT_EQ(::setenv("OPTCACHE_TEST_CHANGED", "before", 1), 0);
  const ChildEnd end =
      RunScript("echo $OPTCACHE_TEST_KEPT $OPTCACHE_TEST_CHANGED $OPTCACHE_TEST_NEW",
                {{"OPTCACHE_TEST_CHANGED", "after"}, {"OPTCACHE_TEST_NEW", "new"}});
  EXPECT_EQ(end.output, "kept after new\n");
  EXPECT_STREQ(::getenv("OPTCACHE_TEST_CHANGED"), "before") << "this process keeps its own";
}

TEST(StartChild, SaysWhyItCannotRun) {
  const TempDir folder;
  folder.Write("no-program", "text");
  const auto gone = StartChild({.command = {folder.Join("gone")}});
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
  EXPECT_TRUE(gone.error().message().starts_with("cannot run " + folder.Join("gone")))
      << gone.error().message();
  const auto unfit = StartChild({.command = {folder.Join("no-program")}});
  ASSERT_FALSE(unfit);
  EXPECT_EQ(unfit.error().code(), Code::kPermissionDenied);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
  EXPECT_EQ(errno, ECHILD);
}

// Where the handler of a signal says that it has run.
int handled = -1;

TEST(StartChild, GoesOnAfterASignal) {
  Pipe interrupted;
  handled = interrupted.writing.get();
  struct sigaction interrupts{};  // what waits is not begun again, as there is no SA_RESTART
  struct sigaction before{};
  interrupts.sa_handler = [](int) { EXPECT_EQ(::write(handled, "!", 1), 1); };
  ASSERT_EQ(::sigaction(SIGUSR1, &interrupts, &before), 0);
  const auto interrupt_parent = [&interrupted] {
    const std::string stat = fmt::format("/proc/{}/stat", ::getppid());
    while (!ReadFile(stat, 1_MiB).value_or(") S").contains(") S"))
      ::sched_yield();
    ::kill(::getppid(), SIGUSR1);
    char said = 0;
    EXPECT_EQ(::read(interrupted.reading.get(), &said, 1), 1);
  };
  const auto gone = StartChild({.command = {"/nowhere/gone"}, .prepare = interrupt_parent});
  ::sigaction(SIGUSR1, &before, nullptr);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace optcache::cli
