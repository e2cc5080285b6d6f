#pragma once

// Keys that last an hour or so, given by a service that is asked again before they end: what
// s3_web_identity.h, s3_container_keys.h and s3_instance_keys.h share.

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "storage/s3_credentials.h"

namespace optcache::storage {

namespace internal {
class HttpClient;
struct HttpRequest;
struct HttpResponse;
}  // namespace internal

struct S3TemporaryKeys {
  S3Credentials credentials;
  double expires_unix_s = 0;
};

struct S3RenewalOptions {
  // Renewed when so much is left of their time, or half of it if that is less.
  Duration renew_before = std::chrono::minutes(5);
  Duration connect_timeout = std::chrono::seconds(5);
  Duration request_timeout = std::chrono::seconds(10);
  Duration retry_after = std::chrono::seconds(10);  // a renewal that failed, while the old are good
  size_t waiting_max = 1024;                        // for the first ones
};

// Seconds since 1970 of "2011-07-15T23:28:33.359Z"; fractions do not count. kDataLoss if it is no
// such time.
Result<double> ParseUtcTime(std::string_view text);

// The JSON by which containers and machines are given keys: {"AccessKeyId": "…", "SecretAccessKey":
// "…", "Token": "…", "Expiration": "2011-07-15T23:28:33Z"}. kDataLoss if it is none,
// kPermissionDenied if its Code is not Success; no message repeats more than that Code.
Result<S3TemporaryKeys> ParseKeyAnswer(std::string_view json);

// Asks one at a time, when keys are wanted and the ones at hand are missing or end soon. A read
// that wants them while they are good never waits. Thread-safe.
class S3TemporaryKeySource : public S3CredentialSource {
 public:
  // kUnavailable: the service cannot be reached; kPermissionDenied: it refuses, or what it wants of
  // us cannot be read; kResourceExhausted: too many wait already.
  Result<std::optional<S3Credentials>> Get(S3CredentialsCallback& later) final;
  void Shutdown() final;

 protected:
  using Answered =
      std::move_only_function<void(const internal::HttpResponse& response, std::string_view body)>;

  // `clock` outlives it. A derived class calls Shutdown in its destructor.
  S3TemporaryKeySource(S3RenewalOptions options, const Clock& clock);
  ~S3TemporaryKeySource() override;

  // Begins to ask; ends with one call of Finish, perhaps on another thread.
  virtual void Ask() = 0;
  // Runs `answered` with a complete 2xx answer, or else Finish. `what` begins the error.
  void Send(internal::HttpRequest request, std::string_view what, Answered answered);
  void Finish(Result<S3TemporaryKeys> keys);
  double UnixSeconds() const { return clock_.UnixSeconds(); }
  Deadline RequestDeadline() const { return Deadline::After(clock_, options_.request_timeout); }

  // What an answer other than 2xx means; `what` begins the message.
  virtual Result<S3TemporaryKeys> Refused(const internal::HttpResponse& response,
                                          std::string_view what) const;

 private:
  const S3RenewalOptions options_;
  const Clock& clock_;
  Mutex mutex_;
  S3TemporaryKeys keys_ GUARDED_BY(mutex_);
  bool asking_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  double renew_unix_s_ GUARDED_BY(mutex_) = 0;
  std::vector<S3CredentialsCallback> waiting_ GUARDED_BY(mutex_);
  std::unique_ptr<internal::HttpClient> client_;  // last: its thread calls back
};

}  // namespace optcache::storage
