#include "storage/s3_credentials.h"

#include <cstdlib>
#include <utility>

#include "storage/internal/key_files.h"

namespace optcache::storage {
namespace {

constexpr Duration kS3KeysLookEvery = std::chrono::seconds(1);
constexpr const char* kCustomerKeyVariable = "OPTCACHE_SSE_CUSTOMER_KEY";

class Fixed final : public S3CredentialSource {
 public:
  explicit Fixed(S3Credentials credentials) : credentials_(std::move(credentials)) {}
  Result<std::optional<S3Credentials>> Get(S3CredentialsCallback& /*later*/) override {
    return credentials_;
  }
  bool anonymous() const override { return credentials_.anonymous(); }

 private:
  const S3Credentials credentials_;
};

// A file by its own name or by that of the variable of the environment, as Secrets have both.
Result<std::optional<std::string>> ReadEither(const std::string& folder, std::string_view name,
                                              std::string_view variable) {
  ASSIGN_OR_RETURN(std::optional<std::string> text, internal::ReadKeyFile(folder, name));
  if (text) return text;
  return internal::ReadKeyFile(folder, variable);
}

Result<S3Keys> KeysIn(const std::string& folder, const std::string& snapshot) {
  ASSIGN_OR_RETURN(std::optional<std::string> id,
                   ReadEither(snapshot, "accessKeyID", "AWS_ACCESS_KEY_ID"));
  ASSIGN_OR_RETURN(std::optional<std::string> secret,
                   ReadEither(snapshot, "secretAccessKey", "AWS_SECRET_ACCESS_KEY"));
  ASSIGN_OR_RETURN(std::optional<std::string> token,
                   ReadEither(snapshot, "sessionToken", "AWS_SESSION_TOKEN"));
  ASSIGN_OR_RETURN(const std::optional<std::string> customer_key,
                   ReadEither(snapshot, "sseCustomerKey", kCustomerKeyVariable));
  S3Keys keys;
  keys.ca_file = internal::CaFileIn(folder);
  if (customer_key) {
    Result<S3CustomerKey> parsed = ParseS3CustomerKey(*customer_key);
    if (!parsed) return internal::BadKeys(folder, "sseCustomerKey: " + parsed.error().message());
    keys.customer_key = *std::move(parsed);
  }
  if (id.has_value() != secret.has_value()) {
    return internal::BadKeys(folder, "accessKeyID and secretAccessKey go together, one is missing");
  }
  if (!id && token) {
    return internal::BadKeys(folder, "there is a sessionToken, but no accessKeyID");
  }
  if (!id && !customer_key && keys.ca_file.empty()) {
    return internal::BadKeys(
        folder, "there is no accessKeyID, no secretAccessKey, no sseCustomerKey, and no ca.crt");
  }
  if (id) {
    keys.credentials = {.access_key_id = *std::move(id),
                        .secret_access_key = *std::move(secret),
                        .session_token = std::move(token).value_or("")};
  }
  return keys;
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::unique_ptr<S3CredentialSource> FixedCredentials(S3Credentials credentials) {
  return std::make_unique<Fixed>(std::move(credentials));
}

Result<S3Keys> ReadS3Keys(const std::string& folder) {
  const std::string before = internal::SnapshotOf(folder);
  Result<S3Keys> keys = KeysIn(folder, before);
  // The old folder goes when there is a new one.
  if (!keys && internal::SnapshotOf(folder) != before)
    keys = KeysIn(folder, internal::SnapshotOf(folder));
  return keys;
}

S3KeyFolder::S3KeyFolder(std::string folder, const Clock& clock)
    : folder_(std::move(folder)), clock_(clock) {
  const MutexLock lock(mutex_);
  keys_ = ReadS3Keys(folder_);
  next_ = clock_.Now() + kS3KeysLookEvery;
}

Result<S3Keys> S3KeyFolder::keys() {
  const MonotonicTime now = clock_.Now();
  {
    const MutexLock lock(mutex_);
    if (now < next_) return keys_;
    next_ = now + kS3KeysLookEvery;
  }
  Result<S3Keys> keys = ReadS3Keys(folder_);
  const MutexLock lock(mutex_);
  keys_ = std::move(keys);
  return keys_;
}

Result<std::optional<S3Credentials>> S3KeyFolder::Get(S3CredentialsCallback& /*later*/) {
  ASSIGN_OR_RETURN(S3Keys found, keys());
  return std::move(found.credentials);
}

Result<S3Credentials> CredentialsOfEnvironment(const Environment& environment) {
  const std::optional<std::string> id = environment("AWS_ACCESS_KEY_ID");
  const std::optional<std::string> secret = environment("AWS_SECRET_ACCESS_KEY");
  if (id.has_value() != secret.has_value()) {
    return Error(Code::kInvalidArgument,
                 "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together, one is not set");
  }
  if (!id) return S3Credentials{};
  return S3Credentials{.access_key_id = *id,
                       .secret_access_key = *secret,
                       .session_token = environment("AWS_SESSION_TOKEN").value_or("")};
}

Result<std::optional<S3CustomerKey>> CustomerKeyOfEnvironment(const Environment& environment) {
  const std::optional<std::string> text = environment(kCustomerKeyVariable);
  if (!text) return std::nullopt;
  Result<S3CustomerKey> key = ParseS3CustomerKey(*text);
  if (!key) return std::unexpected(std::move(key.error()).WithContext(kCustomerKeyVariable));
  return *std::move(key);
}

}  // namespace optcache::storage
