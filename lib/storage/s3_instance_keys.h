#pragma once

// Keys of the role of an EC2 machine, from its metadata service (IMDS, version 2 alone).

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "storage/s3_temporary_keys.h"

namespace optcache::storage {

struct S3InstanceKeysOptions {
  std::string endpoint = "http://169.254.169.254";  // without a last slash
  S3RenewalOptions renewal = {.connect_timeout = std::chrono::seconds(1),
                              .request_timeout = std::chrono::seconds(5)};
};

// Who made the machine, as its firmware says; empty if it does not.
std::string MachineVendor();

// Nothing where the machine's keys are not to be asked for (docs/user/s3.md, "Keys"): they are on a
// machine whose `vendor` is Amazon, but not in a pod of Kubernetes, and wherever
// AWS_EC2_METADATA_DISABLED=false or AWS_EC2_METADATA_SERVICE_ENDPOINT asks for them; never with
// AWS_EC2_METADATA_DISABLED=true. kInvalidArgument: an endpoint that is none.
Result<std::optional<S3InstanceKeysOptions>> InstanceKeysOf(const Environment& environment,
                                                            std::string_view vendor);

// A machine without a role has no keys: then they are empty, and asked for again after a few
// minutes. Asks without a proxy. Thread-safe.
class S3InstanceKeys final : public S3TemporaryKeySource {
 public:
  // `clock` outlives it.
  S3InstanceKeys(S3InstanceKeysOptions options, const Clock& clock);
  ~S3InstanceKeys() override;

 private:
  // A token, by which it is asked for the name of the role, by which it is asked for keys.
  void Ask() override;
  void AskForRole(std::string token);
  void AskForKeys(const std::string& token, std::string_view role);
  Result<S3TemporaryKeys> Refused(const internal::HttpResponse& response,
                                  std::string_view what) const override;
  std::string What() const;

  const S3InstanceKeysOptions options_;
};

}  // namespace optcache::storage
