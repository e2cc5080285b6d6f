#include "cli/print.h"

#include <cerrno>
#include <cstdio>

namespace optcache::cli {

Status Print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return OkStatus();
  }
  return ErrnoStatus(errno, "cannot write to standard output");
}

}  // namespace optcache::cli
