#pragma once

// Keys that a service of the machine gives to a container: EKS Pod Identity, ECS, Greengrass.

#include <optional>
#include <string>

#include "base/clock.h"
#include "storage/s3_temporary_keys.h"

namespace optcache::storage {

struct S3ContainerKeysOptions {
  std::string url;
  std::string token;       // value of the header Authorization; empty: none is sent
  std::string token_file;  // has it, and is read for each request; before `token`
  S3RenewalOptions renewal = {};
};

// Of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI, and
// AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN; nothing without the
// first two. kInvalidArgument: by http keys come from the loopback and the link-local addresses of
// ECS and EKS alone.
Result<std::optional<S3ContainerKeysOptions>> ContainerKeysOf(const Environment& environment);

// Asks without a proxy. Thread-safe.
class S3ContainerKeys final : public S3TemporaryKeySource {
 public:
  // `clock` outlives it.
  S3ContainerKeys(S3ContainerKeysOptions options, const Clock& clock);
  ~S3ContainerKeys() override;

 private:
  void Ask() override;

  const S3ContainerKeysOptions options_;
};

}  // namespace optcache::storage
