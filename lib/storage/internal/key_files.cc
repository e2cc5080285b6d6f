#include "storage/internal/key_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/files.h"

namespace optcache::storage::internal {
namespace {

constexpr ByteCount kKeyBytesMax = 8_KiB;
constexpr size_t kKeyTextBytesMax = 16384;

}  // namespace

bool IsKeyText(std::string_view text) {
  return !text.empty() && text.size() <= kKeyTextBytesMax &&
         std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

bool IsSecretText(std::string_view text) {
  return !text.empty() && text.size() <= kKeyTextBytesMax &&
         std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c != 0x7f; });
}

std::unexpected<Status> BadKeys(const std::string& folder, std::string_view why) {
  return Error(Code::kPermissionDenied, fmt::format("the keys in {}: {}", folder, why));
}

Result<std::optional<std::string>> ReadKeyFile(const std::string& folder, std::string_view name) {
  Result<std::string> text = ReadFile(fmt::format("{}/{}", folder, name), kKeyBytesMax);
  if (!text && text.error().code() == Code::kNotFound) return std::nullopt;
  if (!text) return BadKeys(folder, fmt::format("{} cannot be read, or is too long", name));
  while (text->ends_with('\n') || text->ends_with('\r'))
    text->pop_back();
  // It becomes a part of a header.
  if (!IsSecretText(*text))
    return BadKeys(folder, fmt::format("{} is empty, or not one line of text", name));
  return *std::move(text);
}

std::string SnapshotOf(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path now = std::filesystem::canonical(folder + "/..data", error);
  return error ? folder : now.string();
}

std::string CaFileIn(const std::string& folder) {
  std::error_code ignored;
  std::string file = folder + "/ca.crt";
  return std::filesystem::exists(file, ignored) ? file : "";
}

}  // namespace optcache::storage::internal
