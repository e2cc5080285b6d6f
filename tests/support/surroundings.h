#pragma once

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace optcache {

// Of the variables by which a process finds keys, this one has those given alone until the end;
// then they are as before. Nothing is found in AWS's files and at the machine's service unless
// `given` says so. Not thread-safe: no other thread reads the environment meanwhile.
class Surroundings {
 public:
  explicit Surroundings(std::map<std::string, std::string> given = {}) {
    for (const std::string& name : Found()) {
      before_.emplace(name, std::getenv(name.c_str()));  // NOLINT(concurrency-mt-unsafe)
      ::unsetenv(name.c_str());                          // NOLINT(concurrency-mt-unsafe)
    }
    for (const char* file : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"})
      given.emplace(file, "/dev/null");
    given.emplace("AWS_EC2_METADATA_DISABLED", "true");
    Set(given);
  }
  ~Surroundings() {
    for (const std::string& name : Found())
      ::unsetenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    Set(before_);
  }
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;

 private:
  static std::vector<std::string> Found() {
    std::vector<std::string> names;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      const std::string_view text = *variable;
      if (text.starts_with("AWS_") || text.starts_with("OPTCACHE_SSE_"))
        names.emplace_back(text.substr(0, text.find('=')));
    }
    return names;
  }
  static void Set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables)
      ::setenv(name.c_str(), value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }

  std::map<std::string, std::string> before_;
};

}  // namespace optcache
