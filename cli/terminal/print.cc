#include "cli/terminal/print.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/utf8.h"
#include "cli/terminal/yaml_text.h"

namespace optcache::cli {

Status Print(const std::string& text) {
  const bool for_people = ::isatty(STDOUT_FILENO) != 0;
  const std::string shown = for_people ? Visible(text, "\n\t") : std::string();
  const std::string& out = for_people ? shown : text;
  if (std::fwrite(out.data(), 1, out.size(), stdout) == out.size() && std::fflush(stdout) == 0) {
    return OkStatus();
  }
  return ErrnoStatus(errno, "cannot write to standard output");
}

Status PrintAs(const std::string& output, const std::string& text, const std::string& json) {
  return Print(output == "text" ? text : output == "yaml" ? ToYaml(json) : json);
}

}  // namespace optcache::cli
