#pragma once

// Where keys come from if neither a folder nor a web identity of the address brings them: the
// places in which AWS's own tools look, in their order (docs/user/s3.md, "Keys").

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "storage/s3_credentials.h"

namespace optcache::storage {

// The keys of a profile of AWS's files, which are looked at again every second. Files are written
// in place: one that cannot be read, or has no keys, does not count for some seconds after one that
// had. Thread-safe.
class S3ProfileKeys final : public S3CredentialSource {
 public:
  // `keys` are what the profile has now; `clock` outlives it.
  S3ProfileKeys(Environment environment, S3Credentials keys, const Clock& clock);

  // kPermissionDenied: says what is wrong with the files.
  Result<std::optional<S3Credentials>> Get(S3CredentialsCallback& later) override;

 private:
  const Environment environment_;
  const Clock& clock_;
  Mutex mutex_;
  MonotonicTime next_ GUARDED_BY(mutex_);
  MonotonicTime good_until_ GUARDED_BY(mutex_);
  Result<S3Credentials> keys_ GUARDED_BY(mutex_);
};

// The first that is there: the environment, AWS's files, a container's service, the machine's
// (`vendor` as in s3_instance_keys.h), and else requests without a signature. kInvalidArgument: one
// of them is there, but cannot be used. `clock` outlives what comes.
Result<std::unique_ptr<S3CredentialSource>> OpenKeyChain(const Environment& environment,
                                                         const std::string& vendor,
                                                         const Clock& clock);

}  // namespace optcache::storage
