#include "dataset/s3_location.h"

#include "base/percent_encoding.h"

namespace optcache::dataset {

std::string AddressOf(const S3Location& location) {
  std::string address = "s3://" + location.bucket + "/" + PercentEncodePath(location.prefix);
  char separator = '?';
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    // Slashes stay: they are not special there, and addresses are read by people.
    address.append(1, separator).append(name).append("=").append(PercentEncodePath(value));
    separator = '&';
  };
  add("endpoint", location.endpoint);
  add("region", location.region);
  add("style", location.style);
  add("requester-pays", location.requester_pays ? "true" : "");
  add("listing", location.listing);
  add("role-arn", location.role_arn);
  add("sts-endpoint", location.sts_endpoint);
  add("token-file", location.token_file);
  return address;
}

}  // namespace optcache::dataset
