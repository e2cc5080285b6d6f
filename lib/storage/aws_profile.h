#pragma once

// AWS's own files, ~/.aws/config and ~/.aws/credentials, as far as a bucket needs them:
// docs/formats/aws-files.md.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/s3_credentials.h"

namespace optcache::storage {

inline constexpr ByteCount kAwsFileBytesMax = 1_MiB;

enum class AwsFileKind { kConfig, kCredentials };

struct AwsProperty {
  std::string value;
  size_t line = 0;  // from 1
};

// By name, in lower case; what is nested below `name` has the name "name.nested".
using AwsSection = std::map<std::string, AwsProperty, std::less<>>;

struct AwsFile {
  std::map<std::string, AwsSection, std::less<>> profiles;
  std::map<std::string, AwsSection, std::less<>> services;  // [services NAME] of config
};

// Pure. kInvalidArgument says line and profile, and never what the line has: it may be a secret.
Result<AwsFile> ParseAwsFile(std::string_view text, AwsFileKind kind);

// What the two files say of one profile. All may be empty.
struct AwsProfile {
  std::string name;
  std::string region;
  std::string s3_endpoint;
  std::string ca_bundle;  // a file of certificates to trust instead of the system's
  std::string sts_endpoint;
  // Of a web identity; without token_file there is none.
  std::string role_arn;
  std::string token_file;
  // Nothing if there are none, or there is a web identity. kInvalidArgument: keys that are none, or
  // it gets keys by something that is not done here.
  Result<std::optional<S3Credentials>> keys;
};

// The profile that AWS_PROFILE or AWS_DEFAULT_PROFILE names, or "default", of the files
// that AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE name, or those in $HOME/.aws. A file that is
// not there is empty. kInvalidArgument, with file, line and profile: the profile that a variable
// names is in neither, or a file cannot be read. No message repeats what may be a key.
Result<AwsProfile> ReadAwsProfile(const Environment& environment);

// `environment`, and where it says nothing of region, endpoints, certificates and the web identity,
// what the profile says. With `own_keys` the caller brings keys: then not the web identity.
struct AwsEnvironmentOptions {
  bool own_keys = false;
};
Result<Environment> WithAwsProfile(Environment environment, AwsEnvironmentOptions options = {});

}  // namespace optcache::storage
