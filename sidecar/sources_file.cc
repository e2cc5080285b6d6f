#include "sidecar/sources_file.h"

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
constexpr const char* kBucketsKeys =
    "it is a bucket, whose keys, if it has any, stay with the sidecar";

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

// The address by which a bucket that surely needs no keys is read without any; empty: there is
// none. Where keys of the surroundings count, only their first use tells whether there are any.
std::string PublicBucketUrl(const DatasetSource& source) {
  if (source.ambient_keys || !source.keys_folder.empty()) return "";
  const Result<storage::S3Address> bucket =
      storage::BucketAt(source.store_uri, OpenOptionsOf(source));
  if (!bucket || bucket->requester_pays) return "";
  const storage::S3Place place = storage::PlaceOf(*bucket);
  if (place.unpacks_gzip()) return "";
  return fmt::format("{}{}/{}", place.origin, place.path, PercentEncodePath(bucket->prefix));
}

void AddUrl(std::string_view url, const std::string& ca_file, SourceJson& into) {
  into["url"] = url;
  if (url.starts_with("https://") && !ca_file.empty()) into["caFile"] = AbsolutePath(ca_file);
}

void AddPlace(const DatasetSource& source, const std::string& ca_file, SourceJson& into) {
  constexpr std::string_view kFileScheme = "file://";
  std::string_view address = source.store_uri;
  if (IsHttp(address) && source.keys_folder.empty()) return AddUrl(address, ca_file, into);
  if (address.starts_with(storage::kS3Scheme)) {
    const std::string url = PublicBucketUrl(source);
    if (!url.empty()) return AddUrl(url, ca_file, into);
    into["kept"] = source.keys_folder.empty() ? kBucketsKeys : kKeysStay;
    return;
  }
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
  if (entry.contains("kept")) return entry;
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
