#include "storage/http_keys.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/files.h"

namespace optcache::storage {
namespace {

constexpr ByteCount kKeyBytesMax = 8_KiB;
constexpr Duration kLookEvery = std::chrono::seconds(1);

std::unexpected<Status> BadKeys(const std::string& folder, std::string_view why) {
  return Error(Code::kPermissionDenied, fmt::format("the keys in {}: {}", folder, why));
}

// None if there is no such file.
Result<std::optional<std::string>> ReadKey(const std::string& folder, std::string_view name) {
  Result<std::string> text = ReadFile(fmt::format("{}/{}", folder, name), kKeyBytesMax);
  if (!text && text.error().code() == Code::kNotFound) return std::nullopt;
  if (!text) return BadKeys(folder, fmt::format("{} cannot be read, or is too long", name));
  while (text->ends_with('\n') || text->ends_with('\r'))
    text->pop_back();
  // It becomes a part of a header.
  const bool right = !text->empty() && std::ranges::all_of(*text, [](unsigned char c) {
    return c >= ' ' && c != 0x7f;
  });
  if (!right) return BadKeys(folder, fmt::format("{} is empty, or not one line of text", name));
  return *std::move(text);
}

}  // namespace

Result<HttpKeys> ReadHttpKeys(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::optional<std::string> token, ReadKey(folder, "token"));
  ASSIGN_OR_RETURN(const std::optional<std::string> user, ReadKey(folder, "username"));
  ASSIGN_OR_RETURN(const std::optional<std::string> password, ReadKey(folder, "password"));
  HttpKeys keys;
  std::error_code ignored;
  const std::string ca_file = folder + "/ca.crt";
  if (std::filesystem::exists(ca_file, ignored)) keys.ca_file = ca_file;
  if (user.has_value() != password.has_value())
    return BadKeys(folder, "username and password go together, one is missing");
  if (token && user) return BadKeys(folder, "there are a token and a username: leave one out");
  if (user && user->find(':') != std::string::npos)
    return BadKeys(folder, "a username has no colon in it");
  if (token) keys.authorization = "Bearer " + *token;
  if (user) keys.authorization = "Basic " + EncodeBase64(*user + ":" + *password);
  if (keys.authorization.empty() && keys.ca_file.empty())
    return BadKeys(folder, "there is no token, no username and password, and no ca.crt");
  return keys;
}

HttpKeyFolder::HttpKeyFolder(std::string folder, const Clock& clock)
    : folder_(std::move(folder)), clock_(clock) {
  const MutexLock lock(mutex_);
  if (folder_.empty()) return;
  keys_ = ReadHttpKeys(folder_);
  next_ = clock_.Now() + kLookEvery;
}

Result<HttpKeys> HttpKeyFolder::keys() {
  const MonotonicTime now = clock_.Now();
  {
    const MutexLock lock(mutex_);
    if (folder_.empty() || now < next_) return keys_;
    next_ = now + kLookEvery;
  }
  Result<HttpKeys> keys = ReadHttpKeys(folder_);
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
  return keys_;
}

}  // namespace optcache::storage
