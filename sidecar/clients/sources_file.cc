// Writes for each dataset where a training process can read it without this sidecar.
//
// The idea: a source that is read without keys is listed by its address; one with keys is kept, and
// beside that stands how a process reads it that has the keys. Which of the two it is, is asked of
// the library that opens the store, so the list says what the sidecar does.
//
// Invariant: the file has addresses and paths, and never a key.

#include "sidecar/clients/sources_file.h"

#include <chrono>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/percent_encoding.h"
#include "base/utf8.h"
#include "storage/open_store.h"
#include "storage/s3_address.h"

namespace optcache::sidecar {
namespace {

using SourceJson = nlohmann::ordered_json;

constexpr int kSourcesVersion = 1;
constexpr std::string_view kSourcesSuffix = ".sources";
constexpr const char* kKeysStay = "keys stay with the sidecar";

// Processes with other working folders read it.
std::string AbsolutePath(std::string_view path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  std::string text = (error ? std::filesystem::path(path) : whole).lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/'))
    text.pop_back();
  return text;
}

bool IsHttp(std::string_view address) {
  return address.starts_with("http://") || address.starts_with("https://");
}

void AddTrust(std::string_view url, const std::string& ca_file, SourceJson& into) {
  if (url.starts_with("https://") && !ca_file.empty()) into["caFile"] = AbsolutePath(ca_file);
}

std::string UrlOf(const storage::S3Address& bucket) {
  const storage::S3Place place = storage::PlaceOf(bucket);
  return fmt::format("{}{}/{}", place.origin, place.path, PercentEncodePath(bucket.prefix));
}

// How a process reads the source that has its keys.
SourceJson WayWithKeys(const DatasetSource& source, std::string_view url) {
  SourceJson way = {{"url", url}};
  if (!source.keys_folder.empty()) way["keysFolder"] = AbsolutePath(source.keys_folder);
  return way;
}

SourceJson WayToBucket(const DatasetSource& source, const storage::S3Address& bucket) {
  SourceJson way = WayWithKeys(source, UrlOf(bucket));
  way["region"] = bucket.region;
  if (bucket.requester_pays) way["requesterPays"] = true;
  if (source.ambient_keys) way["ambientKeys"] = true;
  if (!bucket.web_identity()) return way;
  way["stsEndpoint"] = bucket.sts_endpoint;
  way["tokenFile"] = AbsolutePath(bucket.token_file);
  if (!bucket.role_arn.empty()) way["roleARN"] = bucket.role_arn;
  return way;
}

void AddBucket(const DatasetSource& source, const storage::OpenOptions& options, SourceJson& into) {
  const Result<storage::S3Address> bucket = storage::BucketAt(source.store_uri, options);
  const Result<bool> without_keys =
      bucket ? storage::IsReadWithoutKeys(*bucket, options) : Result<bool>(false);
  const Result<std::string> ca_file = storage::CaFileOfBucket(options);
  if (!bucket || !without_keys || !ca_file) {
    into["kept"] = "the sidecar's log says what is wrong with the bucket's address or keys";
    return;
  }
  if (storage::PlaceOf(*bucket).unpacks_gzip()) {
    into["kept"] = "its server unpacks objects that are stored compressed";
    return;
  }
  const std::string url = UrlOf(*bucket);
  if (*without_keys) {
    into["url"] = url;
  } else {
    into["kept"] = kKeysStay;
    into["withKeys"] = WayToBucket(source, *bucket);
  }
  AddTrust(url, *ca_file, into);
}

// Slashes at its end do not count; at the end of a bucket's prefix they do, all but the last.
void AddWebServer(const DatasetSource& source, const std::string& ca_file, SourceJson& into) {
  std::string_view url = source.store_uri;
  while (url.ends_with('/'))
    url.remove_suffix(1);
  if (source.keys_folder.empty()) {
    into["url"] = url;
  } else {
    into["kept"] = kKeysStay;
    into["withKeys"] = WayWithKeys(source, url);
  }
  AddTrust(url, ca_file, into);
}

void AddPlace(const DatasetSource& source, const std::string& ca_file, SourceJson& into) {
  constexpr std::string_view kFileScheme = "file://";
  std::string_view address = source.store_uri;
  if (IsHttp(address)) return AddWebServer(source, ca_file, into);
  if (address.starts_with(storage::kS3Scheme))
    return AddBucket(source, OpenOptionsOf(source, {.ca_file = ca_file}), into);
  if (address.starts_with(kFileScheme)) address.remove_prefix(kFileScheme.size());
  if (address.find("://") != std::string_view::npos) {
    into["kept"] = kKeysStay;
    return;
  }
  const std::string path = AbsolutePath(address);
  if (IsUtf8(path)) {
    into["path"] = path;
  } else {
    into["kept"] = "its path is not UTF-8";
  }
}

SourceJson EntryOf(const ListedSource& listed, const std::string& ca_file) {
  SourceJson entry = {{"name", listed.source.name}};
  AddPlace(listed.source, ca_file, entry);
  const std::string manifest =
      listed.source.manifest_file.empty() ? "" : AbsolutePath(listed.source.manifest_file);
  if (entry.contains("kept") && !entry.contains("withKeys")) return entry;
  entry["patienceSeconds"] =
      std::chrono::duration_cast<std::chrono::seconds>(listed.source.patience).count();
  if (!manifest.empty() && IsUtf8(manifest) && !listed.manifest_digest.empty()) {
    entry["manifest"] = manifest;
    entry["digest"] = listed.manifest_digest;
  }
  return entry;
}

}  // namespace

std::string SourcesJson(const std::vector<ListedSource>& sources, const std::string& ca_file) {
  SourceJson json = {{"version", kSourcesVersion}, {"datasets", SourceJson::array()}};
  for (const ListedSource& listed : sources)
    json["datasets"].push_back(EntryOf(listed, ca_file));
  return json.dump(2, ' ', false, SourceJson::error_handler_t::replace) + "\n";
}

void RemoveSources(const std::string& socket) {
  std::error_code ignored;
  std::filesystem::remove(socket + std::string(kSourcesSuffix), ignored);
}

Status WriteSources(const std::string& socket, const std::vector<ListedSource>& sources,
                    const std::string& ca_file) {
  const std::string file = socket + std::string(kSourcesSuffix);
  const std::string text = SourcesJson(sources, ca_file);
  Status status = text.size() <= kSourcesBytesMax
                      ? WriteFileAtomically(file, text)
                      : Status(Code::kResourceExhausted,
                               fmt::format("{} would have {} bytes, at most {} are allowed", file,
                                           text.size(), kSourcesBytesMax));
  if (!status.ok()) RemoveSources(socket);  // one of an earlier sidecar
  return status;
}

}  // namespace optcache::sidecar
