#include "storage/s3_key_chain.h"

#include <utility>

#include <fmt/format.h>

#include "storage/aws_profile.h"
#include "storage/s3_container_keys.h"
#include "storage/s3_instance_keys.h"

namespace optcache::storage {
namespace {

constexpr Duration kProfileLookEvery = std::chrono::seconds(1);
constexpr Duration kProfileGoodFor = std::chrono::seconds(10);

Result<S3Credentials> ProfileKeysNow(const Environment& environment) {
  ASSIGN_OR_RETURN(const AwsProfile profile, ReadAwsProfile(environment));
  RETURN_IF_ERROR(profile.keys);
  if (!*profile.keys) {
    return Error(Code::kPermissionDenied,
                 fmt::format("the profile \"{}\" of AWS's files has no keys any more",
                             profile.name.substr(0, 100)));
  }
  return **profile.keys;
}

}  // namespace

S3ProfileKeys::S3ProfileKeys(Environment environment, S3Credentials keys, const Clock& clock)
    : environment_(std::move(environment)),
      clock_(clock),
      next_(clock.Now() + kProfileLookEvery),
      good_until_(clock.Now() + kProfileGoodFor),
      keys_(std::move(keys)) {}

Result<std::optional<S3Credentials>> S3ProfileKeys::Get(S3CredentialsCallback& /*later*/) {
  const MonotonicTime now = clock_.Now();
  {
    const MutexLock lock(mutex_);
    if (now < next_) return keys_;
    next_ = now + kProfileLookEvery;
  }
  Result<S3Credentials> keys = ProfileKeysNow(environment_);
  const MutexLock lock(mutex_);
  if (keys) {
    keys_ = *std::move(keys);
    good_until_ = now + kProfileGoodFor;
  } else if (now >= good_until_) {
    keys_ = Error(Code::kPermissionDenied, keys.error().message());
  }
  return keys_;
}

Result<std::unique_ptr<S3CredentialSource>> OpenKeyChain(const Environment& environment,
                                                         const std::string& vendor,
                                                         const Clock& clock) {
  ASSIGN_OR_RETURN(S3Credentials variables, CredentialsOfEnvironment(environment));
  if (!variables.anonymous()) return FixedCredentials(std::move(variables));
  ASSIGN_OR_RETURN(AwsProfile profile, ReadAwsProfile(environment));
  RETURN_IF_ERROR(profile.keys);
  if (*profile.keys) {
    return std::make_unique<S3ProfileKeys>(environment, **std::move(profile.keys), clock);
  }
  ASSIGN_OR_RETURN(std::optional<S3ContainerKeysOptions> container, ContainerKeysOf(environment));
  if (container) return std::make_unique<S3ContainerKeys>(*std::move(container), clock);
  ASSIGN_OR_RETURN(std::optional<S3InstanceKeysOptions> instance,
                   InstanceKeysOf(environment, vendor));
  if (instance) return std::make_unique<S3InstanceKeys>(*std::move(instance), clock);
  return FixedCredentials({});
}

}  // namespace optcache::storage
