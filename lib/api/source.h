#pragma once

// Where the samples of a Dataset are: its spec.source.

#include <string>
#include <variant>

#include "dataset/s3_location.h"

namespace optcache::api {

class Fields;

// Where a resource is used. Some fields have a meaning in one of these places alone, and are
// refused in the other one.
enum class Place { kCluster, kMachine };

struct S3Source {
  // Without a token file: that depends on the pod.
  dataset::S3Location place;
  std::string secret;  // empty: none of its own

  // Keys come for the pod's own token.
  bool web_identity() const { return !place.role_arn.empty(); }
  friend bool operator==(const S3Source&, const S3Source&) = default;
};

struct HttpSource {
  std::string base_url;
  std::string listing = "index.txt";
  std::string secret;  // empty: read without keys
  friend bool operator==(const HttpSource&, const HttpSource&) = default;
};

// A PersistentVolumeClaim of a cluster.
struct ClaimSource {
  std::string claim;
  std::string path;  // inside the volume, may be empty
  friend bool operator==(const ClaimSource&, const ClaimSource&) = default;
};

// A folder of one machine.
struct FileSource {
  std::string path;
  friend bool operator==(const FileSource&, const FileSource&) = default;
};

using Source = std::variant<HttpSource, S3Source, ClaimSource, FileSource>;

// Reads spec.source but for its patience; `spec` is for an error of it as a whole.
Source ReadSource(Fields& source, Fields& spec, Place place);

// The address by which a pod reads it whose token for web identities, if it needs one, is that
// file.
std::string AddressOf(const S3Source& source, const std::string& token_file);
// That by which a pod reads it that has no such token, or gives it none.
std::string AddressWithoutRole(const S3Source& source);
// Of a source of one machine: a path, a URL or the address of a bucket.
std::string AddressOf(const Source& source);

}  // namespace optcache::api
