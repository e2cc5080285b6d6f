#pragma once

// A kubectl that answers from a table and writes down what it was asked.

#include <sys/stat.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/files.h"
#include "cli/cluster/kubectl.h"
#include "support/temp_dir.h"

namespace optcache::cli {

class FakeKubectl {
 public:
  // Who is called with `words` gets the answers one after the other, and the last one ever after.
  // An answer that begins with "Error" is a failure.
  struct Rule {
    std::string words;
    std::vector<std::string> answers;
  };

  // The first rule that fits counts; what fits none is forbidden.
  explicit FakeKubectl(const std::vector<Rule>& rules) {
    std::string script = "#!/bin/sh\necho \"$*\" >> " + dir_.Join("calls") + "\ncat >> " +
                         dir_.Join("input") +
                         "\nanswer() {\n"
                         "  n=$(cat $1.n 2>/dev/null || echo 0); [ -e $1.$n ] || n=$((n - 1))\n"
                         "  echo $((n + 1)) > $1.n\n"
                         "  if [ \"$(head -c 5 $1.$n)\" = Error ]; then cat $1.$n >&2; exit 1; fi\n"
                         "  cat $1.$n\n}\ncase \"$*\" in\n";
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const std::string name = "rule" + std::to_string(i);
      for (std::size_t j = 0; j < rules[i].answers.size(); ++j)
        dir_.Write(name + "." + std::to_string(j), rules[i].answers[j]);
      script += "*\"" + rules[i].words + "\"*) answer " + dir_.Join(name) + " ;;\n";
    }
    script += "*) echo 'Error from server (Forbidden): no' >&2; exit 1 ;;\nesac\n";
    dir_.Write("kubectl", script);
    EXPECT_EQ(::chmod(dir_.Join("kubectl").c_str(), 0700), 0);
  }

  Kubectl kubectl() const { return Kubectl({.program = dir_.Join("kubectl")}); }
  // For the PATH of what calls kubectl by its name.
  const std::string& folder() const { return dir_.path(); }

  // What was at the standard input of all calls together.
  std::string Input() const { return ReadFile(dir_.Join("input"), 1_MiB).value_or(""); }
  // A line a call.
  std::string Calls() const { return ReadFile(dir_.Join("calls"), 1_MiB).value_or(""); }
  // The calls that change something.
  std::string Writes() const {
    std::string writes;
    const std::string calls = Calls();
    for (std::size_t begin = 0; begin < calls.size();) {
      const std::size_t end = calls.find('\n', begin);
      const std::string call = calls.substr(begin, end - begin);
      if (!call.starts_with("get ")) writes += call + "\n";
      begin = end + 1;
    }
    return writes;
  }

 private:
  TempDir dir_;
};

}  // namespace optcache::cli
