#include "storage/http_keys.h"

#include <optional>

#include "base/base64.h"
#include "storage/internal/key_files.h"

namespace optcache::storage {
namespace {

constexpr Duration kHttpKeysLookEvery = std::chrono::seconds(1);

}  // namespace

Result<HttpKeys> ReadHttpKeys(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::optional<std::string> token, internal::ReadKeyFile(folder, "token"));
  ASSIGN_OR_RETURN(const std::optional<std::string> user,
                   internal::ReadKeyFile(folder, "username"));
  ASSIGN_OR_RETURN(const std::optional<std::string> password,
                   internal::ReadKeyFile(folder, "password"));
  HttpKeys keys;
  keys.ca_file = internal::CaFileIn(folder);
  if (user.has_value() != password.has_value())
    return internal::BadKeys(folder, "username and password go together, one is missing");
  if (token && user)
    return internal::BadKeys(folder, "there are a token and a username: leave one out");
  if (user && user->find(':') != std::string::npos)
    return internal::BadKeys(folder, "a username has no colon in it");
  if (token) keys.authorization = "Bearer " + *token;
  if (user) keys.authorization = "Basic " + EncodeBase64(*user + ":" + *password);
  if (keys.authorization.empty() && keys.ca_file.empty())
    return internal::BadKeys(folder, "there is no token, no username and password, and no ca.crt");
  return keys;
}

HttpKeyFolder::HttpKeyFolder(std::string folder, const Clock& clock)
    : folder_(std::move(folder)), clock_(clock) {
  const MutexLock lock(mutex_);
  if (folder_.empty()) return;
  keys_ = ReadHttpKeys(folder_);
  next_ = clock_.Now() + kHttpKeysLookEvery;
}

Result<HttpKeys> HttpKeyFolder::keys() {
  const MonotonicTime now = clock_.Now();
  {
    const MutexLock lock(mutex_);
    if (folder_.empty() || now < next_) return keys_;
    next_ = now + kHttpKeysLookEvery;
  }
  Result<HttpKeys> keys = ReadHttpKeys(folder_);
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
  return keys_;
}

}  // namespace optcache::storage
