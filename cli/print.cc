#include "cli/print.h"

#include <cerrno>
#include <cstdio>

#include "cli/yaml_text.h"

namespace optcache::cli {

Status Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return OkStatus();
  }
  return ErrnoStatus(errno, "cannot write to standard output");
}

Status PrintAs(const std::string& output, const std::string& text, const std::string& json) {
  return Print(output == "text" ? text : output == "yaml" ? ToYaml(json) : json);
}

}  // namespace optcache::cli
