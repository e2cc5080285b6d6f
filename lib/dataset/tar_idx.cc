#include "dataset/tar_idx.h"

#include <optional>

#include <fmt/format.h>

#include "base/whole_number.h"

namespace optcache::dataset {
namespace {

constexpr std::string_view kVersion = "v1.2";
constexpr std::string_view kTarEnding = ".tar";

// What stands before the next `separator`, which goes too.
std::string_view TakeUntil(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

class IdxReader {
 public:
  IdxReader(std::string_view text, ByteCount archive_bytes)
      : text_(text), archive_bytes_(archive_bytes) {}

  Result<std::vector<TarFile>> Read() {
    std::string_view head = NextLine();
    if (TakeUntil(head, ' ') != kVersion)
      return Error(Wrong("not the head of an index of version v1.2, which `wds2idx` makes"));
    const auto samples = ParseWholeNumber(head, kTarBytesMax);
    if (!samples) return Error(Wrong("does not say how many samples there are"));
    ByteCount found = 0;
    while (!text_.empty()) {
      ++found;
      std::string_view line = NextLine();
      do {
        RETURN_IF_ERROR(TakeMember(line));
      } while (!line.empty());
    }
    if (found != *samples) {
      return Error(
          Wrong(fmt::format("the last of {} samples, where there should be {}", found, *samples)));
    }
    return std::move(files_);
  }

 private:
  std::string_view NextLine() {
    ++line_;
    return TakeUntil(text_, '\n');
  }

  Status TakeMember(std::string_view& line) {
    TakeUntil(line, ' ');  // the ending, which the name has too
    const auto offset = ParseWholeNumber(TakeUntil(line, ' '), kTarBytesMax);
    const auto size = ParseWholeNumber(TakeUntil(line, ' '), kTarBytesMax);
    const std::string_view name = TakeUntil(line, ' ');
    if (!offset || !size || name.empty() || name.size() > kTarNameBytesMax)
      return Wrong("not ENDING OFFSET SIZE NAME");
    if (*offset != next_) {
      return Wrong(
          fmt::format("{} lies at {}, where {} would follow what is before", name, *offset, next_));
    }
    if (*offset > archive_bytes_ || *size > archive_bytes_ - *offset)
      return Wrong(fmt::format("{} goes beyond this archive of {} bytes", name, archive_bytes_));
    next_ =
        *offset + (*size + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes + kTarBlockBytes;
    files_.push_back({.name = std::string(name), .offset = *offset, .size = *size});
    return OkStatus();
  }

  Status Wrong(std::string_view what) const {
    return {Code::kInvalidArgument, fmt::format("line {}: {}", line_, what)};
  }

  std::string_view text_;
  const ByteCount archive_bytes_;
  std::uint64_t line_ = 0;
  ByteCount next_ = kTarBlockBytes;  // where the next member's data lies, behind its header
  std::vector<TarFile> files_;
};

}  // namespace

std::string TarIdxPath(std::string_view archive) {
  if (!archive.ends_with(kTarEnding)) return "";
  archive.remove_suffix(kTarEnding.size());
  return std::string(archive) + ".idx";
}

Result<std::vector<TarFile>> ParseTarIdx(std::string_view text, ByteCount archive_bytes) {
  return IdxReader(text, archive_bytes).Read();
}

}  // namespace optcache::dataset
