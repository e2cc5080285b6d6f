#pragma once

// Keys given by a token service (STS) for a token of the pod's own: IAM roles for service accounts,
// MinIO's and Ceph's AssumeRoleWithWebIdentity.

#include <atomic>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "storage/s3_temporary_keys.h"

namespace optcache::storage {

struct S3WebIdentityOptions {
  std::string sts_endpoint;  // "https://sts.eu-west-1.amazonaws.com"
  std::string role_arn;      // may be empty where the server chooses by the token, as MinIO does
  std::string token_file;    // read for each request, as the kubelet renews it
  std::string session_name = "optcache";
  std::string ca_file;
  S3RenewalOptions renewal = {};
};

// The answer of AssumeRoleWithWebIdentity. kDataLoss if it is none; no message repeats its content.
Result<S3TemporaryKeys> ParseWebIdentityAnswer(std::string_view xml);

// Thread-safe.
class S3WebIdentity final : public S3TemporaryKeySource {
 public:
  // `clock` outlives it.
  S3WebIdentity(S3WebIdentityOptions options, const Clock& clock);
  ~S3WebIdentity() override;

  bool expired() const override { return token_expired_; }

 private:
  void Ask() override;
  Result<S3TemporaryKeys> Refused(const internal::HttpResponse& response,
                                  std::string_view what) const override;

  const S3WebIdentityOptions options_;
  mutable std::atomic<bool> token_expired_ = false;  // as the last answer says
};

}  // namespace optcache::storage
