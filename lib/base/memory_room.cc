#include "base/memory_room.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace optcache {
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
  const auto limit = ControlGroupMemoryLimit();
  const auto used = NumberIn(folder + "/memory.current", "");
  if (!limit || !used) return std::nullopt;
  const ByteCount reclaimable = NumberIn(folder + "/memory.stat", "inactive_file ").value_or(0);
  const ByteCount needed = *used - std::min(*used, reclaimable);
  return *limit - std::min(*limit, needed);
}

// By a line of /proc/meminfo.
MemoryRoom OfMachine(std::string_view key) {
  const auto kilobytes = NumberIn("/proc/meminfo", key);
  return {.bytes = kilobytes ? *kilobytes * 1024 : ~ByteCount{0}, .limited_by = "the machine"};
}

MemoryRoom OrLess(MemoryRoom room, std::optional<ByteCount> of_group) {
  if (!of_group || *of_group >= room.bytes) return room;
  return {.bytes = *of_group, .limited_by = "the container's memory limit"};
}

}  // namespace

// "max" is no number.
std::optional<ByteCount> ControlGroupMemoryLimit() {
  return NumberIn(ControlGroupFolder() + "/memory.max", "");
}

MemoryRoom AvailableMemory() {
  return OrLess(OfMachine("MemAvailable:"), ControlGroupRoom());
}

MemoryRoom TotalMemory() {
  return OrLess(OfMachine("MemTotal:"), ControlGroupMemoryLimit());
}

}  // namespace optcache
