#pragma once

// Runs the whole command line within a test.

#include <stdlib.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/program.h"
#include "unit/cli/fake_kubectl.h"

namespace optcache::cli {

// What a run of the command line came to.
struct Ended {
  int status = 0;
  std::string out;
  std::string err;
};

// Runs the command line `words`, with a blank between two of them, under the name `called`.
inline Ended RunAs(const char* called, const std::string& words) {
  std::vector<std::string> arguments = {called};
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    arguments.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments)
    pointers.push_back(argument.c_str());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Ended ended;
  ended.status = RunProgram(static_cast<int>(pointers.size()), pointers.data(), "1.2.3");
  ended.out = testing::internal::GetCapturedStdout();
  ended.err = testing::internal::GetCapturedStderr();
  return ended;
}

inline Ended RunAsPlugin(const std::string& words) {
  return RunAs("/usr/bin/kubectl-optcache", words);
}

// The fake kubectl is the first of the PATH while this lives.
class KubectlInPath {
 public:
  explicit KubectlInPath(const FakeKubectl& fake) {
    ::setenv("PATH", (fake.folder() + ":" + before_).c_str(), 1);
  }
  ~KubectlInPath() { ::setenv("PATH", before_.c_str(), 1); }
  KubectlInPath(const KubectlInPath&) = delete;
  KubectlInPath& operator=(const KubectlInPath&) = delete;

 private:
  std::string before_ = ::getenv("PATH");
};

}  // namespace optcache::cli
