// Reads a Dataset's source, one function for each kind of it.

#include "api/source.h"

#include "api/fields.h"
#include "api/limits.h"

namespace optcache::api {
namespace {

constexpr std::size_t kMaxFolder = 4096;
constexpr Names<std::string_view, 2> kStyles{{{"Path", "path"}, {"VirtualHost", "virtual"}}};

constexpr const char* kDefaultRegion = "us-east-1";  // in a cluster; else the environment says it

void CheckUrl(Fields& fields, std::string_view name, const std::string& url) {
  if (url.empty() || url.starts_with("http://") || url.starts_with("https://")) return;
  fields.Fault(name, "'" + url + "', allowed: http://… or https://…");
}

bool StaysInside(const std::string& path) {
  if (path.starts_with('/')) return false;
  const std::string framed = "/" + path + "/";
  return framed.find("/../") == std::string::npos;
}

void ReadSecret(Fields& fields, std::string& name) {
  fields.In("secretRef", [&](Fields& secret) {
    secret.Need("name", name, kMaxName, "the name of a Secret of the Dataset's namespace");
  });
}

void ReadRole(Fields& s3, S3Source& source) {
  dataset::S3Location& place = source.place;
  s3.Read("roleARN", place.role_arn, kMaxUrl);
  s3.Read("stsEndpoint", place.sts_endpoint, kMaxUrl);
  CheckUrl(s3, "stsEndpoint", place.sts_endpoint);
  if (place.role_arn.empty() && !place.sts_endpoint.empty())
    s3.Fault("stsEndpoint", "for roleARN alone, which is missing");
}

S3Source ReadS3(Fields& s3, Place where) {
  S3Source source;
  dataset::S3Location& place = source.place;
  if (where == Place::kCluster) place.region = kDefaultRegion;
  s3.Need("bucket", place.bucket, kMaxLabel, "the name of a bucket");
  s3.Read("prefix", place.prefix, kMaxPath);
  s3.Read("endpoint", place.endpoint, kMaxUrl);
  CheckUrl(s3, "endpoint", place.endpoint);
  s3.Read("region", place.region, kMaxRegion);
  s3.Read("requesterPays", place.requester_pays);
  s3.Read("listing", place.listing, kMaxPath);
  if (place.listing.starts_with('/'))
    s3.Fault("listing", "keys do not begin with a slash: leave it out");
  std::string_view style;
  s3.Read("style", style, kStyles);
  place.style = style;
  if (where == Place::kCluster) {
    ReadSecret(s3, source.secret);
    ReadRole(s3, source);
    return source;
  }
  for (const char* field : {"secretRef", "roleARN", "stsEndpoint"}) {
    if (s3.Has(field)) {
      s3.Fault(field,
               "is of a cluster; on one machine leave it out: the variables AWS_ACCESS_KEY_ID, "
               "AWS_SECRET_ACCESS_KEY and so on say the keys, or `--keys NAME=FOLDER`");
    }
  }
  return source;
}

HttpSource ReadHttp(Fields& http, Place where) {
  HttpSource source;
  http.Need("baseURL", source.base_url, kMaxUrl, "http://… or https://…");
  CheckUrl(http, "baseURL", source.base_url);
  http.Read("listing", source.listing, kMaxPath);
  if (where == Place::kCluster) {
    ReadSecret(http, source.secret);
  } else if (http.Has("secretRef")) {
    http.Fault("secretRef",
               "names a Secret of a cluster; on one machine leave it out and give `--keys "
               "NAME=FOLDER`");
  }
  return source;
}

ClaimSource ReadClaim(Fields& pvc) {
  ClaimSource source;
  pvc.Need("claimName", source.claim, kMaxName, "the name of a PersistentVolumeClaim");
  pvc.Read("path", source.path, kMaxPath);
  if (!StaysInside(source.path))
    pvc.Fault("path", "a path inside the volume, without / at its begin and without ..");
  return source;
}

}  // namespace

Source ReadSource(Fields& source, Fields& spec, Place where) {
  const bool machine = where == Place::kMachine;
  if (machine && source.Has("pvc"))
    source.Fault("pvc", "is a volume of a cluster; on one machine write file: {path: …}");
  if (!machine && source.Has("file")) {
    spec.Fault("source",
               "file is a folder of one machine, for `optcache up` alone: in a cluster use s3, "
               "http or pvc");
    return {};
  }
  const char* const last = machine ? "file" : "pvc";
  const int count = int{source.Has("s3")} + int{source.Has("http")} + int{source.Has(last)};
  if (count != 1) {
    spec.Fault("source", machine ? "needs exactly one of file, http and s3"
                                 : "needs exactly one of s3, http and pvc");
    return {};
  }
  Source out;
  source.In("s3", [&](Fields& s3) { out = ReadS3(s3, where); });
  source.In("http", [&](Fields& http) { out = ReadHttp(http, where); });
  source.In(last, [&](Fields& fields) {
    if (machine) {
      fields.Need("path", out.emplace<FileSource>().path, kMaxFolder, "a folder");
    } else {
      out = ReadClaim(fields);
    }
  });
  return out;
}

std::string AddressOf(const S3Source& source, const std::string& token_file) {
  dataset::S3Location place = source.place;
  if (source.web_identity()) place.token_file = token_file;
  return dataset::AddressOf(place);
}

std::string AddressWithoutRole(const S3Source& source) {
  dataset::S3Location place = source.place;
  place.role_arn.clear();
  place.sts_endpoint.clear();
  return dataset::AddressOf(place);
}

std::string AddressOf(const Source& source) {
  if (const auto* s3 = std::get_if<S3Source>(&source)) return dataset::AddressOf(s3->place);
  if (const auto* http = std::get_if<HttpSource>(&source)) return http->base_url;
  const auto* file = std::get_if<FileSource>(&source);
  return file == nullptr ? "" : file->path;
}

}  // namespace optcache::api
