#include "handoff/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/files.h"

namespace optcache::handoff {
namespace {

constexpr ByteCount kSmallFile = 1_MiB;

// The number after `key` in a text of lines such as "MemAvailable:  1024 kB"; with an empty key,
// the text's own.
std::optional<ByteCount> NumberAfter(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  ByteCount number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  return number;
}

std::optional<ByteCount> NumberIn(const std::string& path, std::string_view key) {
  const Result<std::string> text = ReadFile(path, kSmallFile);
  return text ? NumberAfter(*text, key) : std::nullopt;
}

// Where this process's control group (version 2) shows its limits.
std::string ControlGroupFolder() {
  const Result<std::string> groups = ReadFile("/proc/self/cgroup", kSmallFile);
  constexpr std::string_view kVersion2 = "0::";
  const std::size_t at = groups ? groups->find(kVersion2) : std::string::npos;
  if (at == std::string::npos) return "/sys/fs/cgroup";
  const std::size_t begin = at + kVersion2.size();
  return "/sys/fs/cgroup" + groups->substr(begin, groups->find('\n', begin) - begin);
}

// Nothing if there is no limit.
std::optional<ByteCount> ControlGroupRoom() {
  const std::string folder = ControlGroupFolder();
  const auto limit = NumberIn(folder + "/memory.max", "");
  const auto used = NumberIn(folder + "/memory.current", "");
  if (!limit || !used) return std::nullopt;
  const ByteCount reclaimable = NumberIn(folder + "/memory.stat", "inactive_file ").value_or(0);
  const ByteCount needed = *used - std::min(*used, reclaimable);
  return *limit - std::min(*limit, needed);
}

Status NoMemory(ByteCount size, const AvailableMemory& available) {
  return {Code::kResourceExhausted, "there is no room for " + FormatBytes(size) +
                                        " of shared memory: " + FormatBytes(available.bytes) +
                                        " are left by " + available.limited_by + "; ask for less"};
}

Result<UniqueFd> CreateMemoryFile(const std::string& name) {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Error(ErrnoStatus(errno, "create the memory file " + name));
  return fd;
}

}  // namespace

AvailableMemory GetAvailableMemory() {
  AvailableMemory available{.bytes = ~ByteCount{0}, .limited_by = "the machine"};
  if (const auto kilobytes = NumberIn("/proc/meminfo", "MemAvailable:")) {
    available.bytes = *kilobytes * 1024;
  }
  if (const auto room = ControlGroupRoom(); room && *room < available.bytes) {
    available = {.bytes = *room, .limited_by = "the container's memory limit"};
  }
  return available;
}

Result<UniqueFd> MakeMemoryFile(const std::string& name, ByteCount size) {
  // Asked first: beyond a container's limit the kernel does not refuse, it kills.
  const AvailableMemory available = GetAvailableMemory();
  if (size > available.bytes) return Error(NoMemory(size, available));
  ASSIGN_OR_RETURN(UniqueFd fd, CreateMemoryFile(name));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return Error(ErrnoStatus(errno, "size the memory file " + name));
  }
  while (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOSPC || errno == ENOMEM) return Error(NoMemory(size, available));
    return Error(ErrnoStatus(errno, "fill the memory file " + name));
  }
  return fd;
}

Result<UniqueFd> MakeSealedCopy(const std::string& name, ByteSpan bytes) {
  ASSIGN_OR_RETURN(UniqueFd fd, CreateMemoryFile(name));
  RETURN_IF_ERROR(WriteAll(fd.get(), AsText(bytes), "the memory file " + name));
  RETURN_IF_ERROR(Seal(fd));
  return fd;
}

Status Seal(const UniqueFd& file) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) == 0) return OkStatus();
  return ErrnoStatus(errno, "seal a memory file");
}

}  // namespace optcache::handoff
