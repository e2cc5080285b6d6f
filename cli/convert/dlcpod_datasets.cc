// Turns the keys of a DLCache job into Datasets: a prefix, and patterns below it.
//
// DLCache's keys are beginnings of names; a Dataset's are a folder and globs. The common folder of
// all keys becomes the prefix, and each key a pattern for the object and the folder of that name.
// Where the two meanings differ, a remark says so, as a comment in the YAML. A source that has a
// name gives it to its Datasets, so pods that share the source share them.

#include "cli/convert/dlcpod_datasets.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "dataset/digest.h"
#include "dataset/glob.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using config::DlcJob;
using config::DlcKeys;
using config::DlcPod;

constexpr const char* kUnnamed = "data";
// With "-validation-manifests" it has 63 characters, the most that a Dataset's name may have.
constexpr std::size_t kMaxSourceName = 42;

// "Imagenet-Mini-Obj" as "imagenet-mini-obj", which may name a resource. Long texts that differ
// only at their end have different names.
std::string ResourceName(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (upper || plain) {
      name += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  while (name.ends_with('-'))
    name.pop_back();
  if (name.size() > kMaxSourceName) {
    const std::string end = "-" + dataset::ToHex(dataset::Sha256Of(AsBytes(text))).substr(0, 8);
    name = name.substr(0, kMaxSourceName - end.size()) + end;
  }
  return name.empty() ? kUnnamed : name;
}

// --- Keys of DLCache, as prefix and patterns

struct Selection {
  std::string prefix;                // empty, or with a slash at its end
  std::vector<std::string> include;  // empty: all below the prefix
};

// A key with a dot in its last part may name an object, "a.tar", or a folder, "v1.0". All else is
// taken for a folder.
bool MayNameObject(std::string_view key) {
  return key.substr(key.rfind('/') + 1).find('.') != std::string_view::npos;
}

// The key with a slash at its end, if it can only be a folder.
std::string WithSlash(const std::string& key) {
  return key.empty() || key.ends_with('/') || MayNameObject(key) ? key : key + "/";
}

std::string_view FolderOf(std::string_view key) {
  return key.substr(0, key.rfind('/') + 1);
}

Result<Selection> SelectionOf(const std::vector<std::string>& keys) {
  std::vector<std::string> wanted;
  for (const std::string& key : keys)
    wanted.push_back(WithSlash(key));
  Selection selection{.prefix = std::string(FolderOf(wanted.front())), .include = {}};
  for (const std::string& key : wanted) {
    while (!FolderOf(key).starts_with(selection.prefix)) {
      std::string_view above = selection.prefix;
      above.remove_suffix(1);
      selection.prefix = FolderOf(above);
    }
  }
  for (const std::string& key : wanted) {
    const std::string rest = key.substr(selection.prefix.size());
    if (rest.empty()) return Selection{.prefix = selection.prefix, .include = {}};
    if (rest.find_first_of("*?") != std::string::npos) {
      return Error(Code::kInvalidArgument, "key '" + key +
                                               "': * and ? stand for other characters in the "
                                               "include of a Dataset, rename the key");
    }
    // ** stands for no component, too: "a.tar/**" takes the object a.tar and the folder a.tar/.
    selection.include.push_back(rest + (rest.ends_with('/') ? "**" : "/**"));
  }
  RETURN_IF_ERROR(dataset::GlobSet::Compile(selection.include));
  return selection;
}

// --- Datasets

std::string SecretForOptcache(const DlcPod& pod) {
  return pod.secret + "-optcache";
}

OrderedJson DatasetJson(const std::string& name, const DlcPod& pod, const std::string& bucket,
                        const Selection& selection, const std::string& region) {
  OrderedJson s3 = {{"bucket", bucket}};
  if (!selection.prefix.empty()) s3["prefix"] = selection.prefix;
  if (!region.empty()) s3["region"] = region;
  if (!pod.secret.empty()) s3["secretRef"] = {{"name", SecretForOptcache(pod)}};
  OrderedJson spec;
  spec["source"]["s3"] = s3;
  if (!selection.include.empty()) spec["include"] = selection.include;
  spec["order"] = "Path";
  spec["cache"] = {{"capacity", "100%"}};
  return {{"apiVersion", "optcache.io/v1alpha1"},
          {"kind", "Dataset"},
          {"metadata", MetadataOf(name, pod)},
          {"spec", spec}};
}

// Objects and folders are what DLCache takes for beginnings of names.
std::vector<std::string> RemarksOnKeys(const std::vector<std::string>& keys) {
  std::vector<std::string> remarks;
  std::vector<std::string> with_dot;
  for (const std::string& key : keys) {
    const bool all_of_it = std::ranges::any_of(keys, [&](const std::string& folder) {
      return (folder.empty() || folder.ends_with('/')) && key.starts_with(folder);
    });
    if (all_of_it) continue;
    if (MayNameObject(key)) {
      with_dot.push_back(key);
    } else {
      remarks.push_back(fmt::format(
          "DLCache reads every key that begins with {0}. This Dataset reads the folder {0}/.",
          key));
    }
  }
  if (!with_dot.empty()) {
    remarks.push_back(
        fmt::format("DLCache reads every key that begins with {}. This Dataset reads only objects "
                    "and folders of exactly that name, and not {}.idx, for example.",
                    fmt::join(with_dot, " or "), with_dot.front()));
  }
  return remarks;
}

// Only a datasource.name is the same for several pods.
std::string SourceNameOf(const DlcPod& pod, const DlcJob& job) {
  return ResourceName(job.source_name.empty() ? pod.name + "-" + job.name : job.source_name);
}

}  // namespace

OrderedJson MetadataOf(const std::string& name, const DlcPod& pod) {
  OrderedJson metadata = {{"name", name}};
  if (!pod.name_space.empty()) metadata["namespace"] = pod.name_space;
  return metadata;
}

bool UsesCache(const DlcJob& job) {
  return job.use_cache.value_or(false) || !job.qos_config_map.empty();
}

bool HasKeys(const DlcJob& job) {
  return std::ranges::any_of(job.keys, [](const DlcKeys& set) {
    return !set.samples.empty() || !set.targets.empty() || !set.manifests.empty();
  });
}

bool HasDatasets(const DlcJob& job) {
  return UsesCache(job) && HasKeys(job);
}

Result<std::vector<DatasetOfJob>> DatasetsOf(const DlcPod& pod, const DlcJob& job,
                                             const std::string& region) {
  std::vector<DatasetOfJob> datasets;
  const std::string source = SourceNameOf(pod, job);
  for (std::size_t set = 0; set < config::kDlcSets.size(); ++set) {
    const DlcKeys& all = job.keys[set];
    const std::pair<const std::vector<std::string>&, std::string_view> lists[] = {
        {all.samples, ""}, {all.targets, "-targets"}, {all.manifests, "-manifests"}};
    for (const auto& [keys, suffix] : lists) {
      if (keys.empty()) continue;
      const std::string name = fmt::format("{}-{}{}", source, config::kDlcSets[set], suffix);
      Result<Selection> selection = SelectionOf(keys);
      if (!selection)
        return Error(std::move(selection).error().WithContext("keys of Dataset " + name));
      datasets.push_back(
          {.name = name,
           .document = {.remarks = RemarksOnKeys(keys),
                        .json = DatasetJson(name, pod, job.bucket, *selection, region).dump()}});
    }
  }
  return datasets;
}

std::vector<std::string> RemarksOnSource(const DlcPod& pod, const std::string& region) {
  std::vector<std::string> remarks;
  const std::string where = pod.name_space.empty() ? "" : "--namespace " + pod.name_space + " ";
  if (!pod.secret.empty()) {
    remarks.push_back(
        "The keys of the bucket have other names in a Secret for optcache. Make it from DLCache's "
        "Secret before you apply the rest:");
    remarks.push_back(fmt::format(
        R"(  kubectl {0}get secret {1} -o go-template='{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{2}"}},"data":{{"accessKeyID":"{{{{.data.aws_access_key_id}}}}","secretAccessKey":"{{{{.data.aws_secret_access_key}}}}"}}}}' | kubectl {0}apply -f -)",
        where, pod.secret, SecretForOptcache(pod)));
    remarks.push_back(fmt::format(
        "optcache does not need dlcache_user and dlcache_pwd of Secret {}.", pod.secret));
  }
  if (region.empty() && !pod.secret.empty()) {
    remarks.push_back(
        "The region of the bucket is in that Secret, too. If this command does not print "
        "us-east-1, convert again with --region:");
    remarks.push_back(
        fmt::format("  kubectl {}get secret {} -o jsonpath='{{.data.region_name}}' | base64 -d",
                    where, pod.secret));
  }
  remarks.push_back(
      "DLCache keeps everything, and so does a capacity of 100%. A smaller capacity is often "
      "enough: "
      "see docs/user/how-large.md.");
  return remarks;
}

}  // namespace optcache::cli
