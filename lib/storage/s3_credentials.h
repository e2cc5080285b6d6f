#pragma once

// Where the keys of a bucket come from: a folder, as Kubernetes mounts a Secret; the environment,
// as AWS's own tools have it; a web identity (s3_web_identity.h). They may change while they are
// used.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "storage/s3_customer_key.h"
#include "storage/s3_signature.h"

namespace optcache::storage {

// A variable of the environment; nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> ProcessEnvironment(const char* name);

using S3CredentialsCallback = std::move_only_function<void(Result<S3Credentials>)>;

// Thread-safe.
class S3CredentialSource {
 public:
  virtual ~S3CredentialSource() = default;

  // The keys of now; or nothing if they are still on their way: then `later` has been taken and
  // runs exactly once within seconds, perhaps on another thread, perhaps before this returns.
  // Otherwise `later` is left alone.
  virtual Result<std::optional<S3Credentials>> Get(S3CredentialsCallback& later) = 0;

  // After kPermissionDenied: true if keys were refused for something whose time is over, and of
  // which there may be a newer one soon.
  virtual bool expired() const { return false; }

  // True: there are none, and will be none, so requests go without a signature.
  virtual bool anonymous() const { return false; }

  // Ends what is under way with kCancelled; nobody is called back any more when it returns.
  virtual void Shutdown() {}
};

// Keys that do not change; empty ones make requests without a signature.
std::unique_ptr<S3CredentialSource> FixedCredentials(S3Credentials credentials);

struct S3Keys {
  S3Credentials credentials;
  std::optional<S3CustomerKey> customer_key;
  std::string ca_file;  // certificates to trust; empty: the folder has none
};

// Of the files accessKeyID, secretAccessKey and, if there, sessionToken and sseCustomerKey, or by
// the names of the variables, AWS_ACCESS_KEY_ID and so on; a line's end after them does not count.
// With ca.crt or sseCustomerKey alone the credentials are empty. kPermissionDenied: a part is
// missing or is not what it should be. No message repeats what is in them.
Result<S3Keys> ReadS3Keys(const std::string& folder);

// Looks into the folder again every second, as Secrets change under way. Thread-safe.
class S3KeyFolder final : public S3CredentialSource {
 public:
  // Looks for the first time. `clock` outlives it.
  S3KeyFolder(std::string folder, const Clock& clock);

  Result<S3Keys> keys();
  Result<std::optional<S3Credentials>> Get(S3CredentialsCallback& later) override;

 private:
  const std::string folder_;
  const Clock& clock_;
  Mutex mutex_;
  MonotonicTime next_ GUARDED_BY(mutex_) = {};
  Result<S3Keys> keys_ GUARDED_BY(mutex_) = {};
};

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; empty if the first two are unset.
// kInvalidArgument if one of the two is.
Result<S3Credentials> CredentialsOfEnvironment(const Environment& environment);

// OPTCACHE_SSE_CUSTOMER_KEY; none if it is unset. kInvalidArgument: it is no such key.
Result<std::optional<S3CustomerKey>> CustomerKeyOfEnvironment(const Environment& environment);

}  // namespace optcache::storage
