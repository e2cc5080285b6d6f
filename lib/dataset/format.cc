#include "dataset/format.h"

#include <fmt/format.h>

namespace optcache::dataset {

Result<Format> ParseFormat(std::string_view name) {
  std::string known;
  for (const FormatNames& format : kFormats) {
    if (name == format.name || name == format.in_resources) return format.format;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", format.name);
  }
  return Error(Code::kInvalidArgument, fmt::format("format {}: there are {}", name, known));
}

}  // namespace optcache::dataset
