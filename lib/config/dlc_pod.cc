// Reads DLCache's jobs: one function for each part of the document, in the order of its fields.
//
// The idea: fields that mean something to us become typed values. Fields that a container of
// Kubernetes has too are kept as they are written (ReadValue), in the order in which Kubernetes
// documents them, so the converted resource can repeat them. What an API server adds to metadata,
// and the status, is accepted and left behind. Any other key is an error of Finish, which names
// those that there are.

#include "config/dlc_pod.h"

#include <array>
#include <limits>
#include <utility>

#include "base/utf8.h"
#include "config/internal/yaml_document.h"
#include "config/internal/yaml_fields.h"

namespace optcache::config {
namespace {

using internal::YamlErrors;
using internal::YamlMap;

constexpr std::string_view kDlcVersion = "docgroup.com/v1alpha1";
constexpr std::string_view kDlcKind = "DLCPod";

// Fields of a job that its container takes as they are.
constexpr auto kListFields =
    std::to_array<const char*>({"command", "args", "env", "envFrom", "ports", "volumeMounts"});
constexpr auto kMapFields = std::to_array<const char*>({"resources", "lifecycle"});
constexpr auto kTextFields = std::to_array<const char*>({"workingDir", "imagePullPolicy"});
constexpr auto kFlagFields = std::to_array<const char*>({"tty", "stdin"});
// What an API server writes into metadata.
constexpr auto kServersFields =
    std::to_array<const char*>({"creationTimestamp", "generation", "resourceVersion", "uid",
                                "selfLink", "managedFields", "ownerReferences", "finalizers"});

void NeedWord(YamlMap& document, std::string_view name, std::string_view allowed) {
  std::string word;
  document.Need(name, word, allowed);
  if (word != allowed)
    document.Fail(name, "'" + word + "' is not known, allowed: " + std::string(allowed));
}

void ReadDlcMetadata(YamlMap& document, DlcPod& pod) {
  if (!document.Has("metadata")) document.Fail("metadata", "missing, write metadata: {name: …}");
  document.In("metadata", [&](YamlMap& metadata) {
    metadata.NeedSubdomain("name", pod.name);
    if (metadata.Has("namespace")) metadata.ReadLabel("namespace", pod.name_space);
    metadata.Read("labels", pod.labels);
    metadata.Read("annotations", pod.annotations);
    for (const char* const name : kServersFields)
      metadata.Ignore(name);
  });
}

void ReadDlcSource(YamlMap& job, DlcJob& out) {
  if (!job.Has("datasource")) job.Fail("datasource", "missing, write datasource: {bucket: …}");
  job.In("datasource", [&](YamlMap& source) {
    source.Read("name", out.source_name);
    source.Need("bucket", out.bucket, "the name of a bucket");
    source.Read("etag", out.etag);
    source.In("keys", [&](YamlMap& keys) {
      for (std::size_t i = 0; i < kDlcSets.size(); ++i) {
        keys.In(kDlcSets[i], [&](YamlMap& set) {
          set.Read("samples", out.keys[i].samples);
          set.Read("targets", out.keys[i].targets);
          set.Read("manifests", out.keys[i].manifests);
        });
      }
    });
  });
}

void ReadDlcQos(YamlMap& job, DlcJob& out) {
  job.In("qos", [&](YamlMap& qos) {
    if (qos.Has("usecache")) qos.Read("usecache", out.use_cache.emplace());
    qos.Read("lazyloading", out.lazy_loading);
    qos.Read("MaxPartMill", out.max_part_mill, std::numeric_limits<std::int64_t>::min(),
             std::numeric_limits<std::int64_t>::max());
  });
  job.In("configurationsfromconfigmap",
         [&](YamlMap& map) { map.Read("name", out.qos_config_map); });
}

// In the order in which Kubernetes documents them.
void ReadDlcContainer(YamlMap& job, DlcJob& out) {
  const auto keep = [&](const char* name, YamlValue value) {
    out.container.emplace_back(name, std::move(value));
  };
  std::string image;
  job.Need("image", image, "the name of an image");
  keep("image", {.value = image});
  for (const char* const name : kListFields) {
    if (job.Has(name)) keep(name, job.ReadValue(name, YamlMap::Shape::kList));
  }
  for (const char* const name : kMapFields) {
    if (job.Has(name)) keep(name, job.ReadValue(name, YamlMap::Shape::kMap));
  }
  for (const char* const name : kTextFields) {
    std::string text;
    job.Read(name, text);
    if (!text.empty()) keep(name, {.value = text});
  }
  for (const char* const name : kFlagFields) {
    bool flag = false;
    job.Read(name, flag);
    if (flag) keep(name, {.value = true});
  }
}

void ReadDlcJob(YamlMap& job, DlcJob& out) {
  if (!job.Has("name")) job.Fail("name", "missing, write name: …");
  job.ReadLabel("name", out.name);
  ReadDlcContainer(job, out);
  ReadDlcSource(job, out);
  ReadDlcQos(job, out);
}

void ReadDlcSpec(YamlMap& document, DlcPod& pod) {
  if (!document.Has("spec")) document.Fail("spec", "missing, write spec: {jobs: …}");
  document.In("spec", [&](YamlMap& spec) {
    spec.In("secret", [&](YamlMap& secret) { secret.NeedSubdomain("name", pod.secret); });
    spec.ForEach("jobs", [&](YamlMap& job) { ReadDlcJob(job, pod.jobs.emplace_back()); });
    if (pod.jobs.empty()) spec.Fail("jobs", "missing or empty, write a job at least");
    if (spec.Has("volumes")) pod.volumes = spec.ReadValue("volumes", YamlMap::Shape::kList);
    spec.Read("labels", pod.pod_labels);
    spec.Read("nodeSelector", pod.node_selector);
    spec.Read("nodeName", pod.node_name);
    spec.Read("hostnetwork", pod.host_network);
    pod.has_node_sequence = spec.Has("nodesequence");
  });
}

}  // namespace

Result<std::vector<DlcPod>> ParseDlcPods(std::string_view text, std::string_view file) {
  if (!IsUtf8(text)) return Error(Code::kInvalidArgument, std::string(file) + ": not UTF-8");
  ASSIGN_OR_RETURN(const std::vector<YAML::Node> documents, internal::LoadDocuments(text, file));
  if (documents.empty()) {
    return Error(Code::kInvalidArgument,
                 std::string(file) + ": empty, allowed: " + std::string(kDlcKind));
  }
  std::vector<DlcPod> pods;
  for (const YAML::Node& node : documents) {
    YamlErrors errors(file);
    YamlMap document(node, "", errors);
    NeedWord(document, "apiVersion", kDlcVersion);
    NeedWord(document, "kind", kDlcKind);
    document.Ignore("status");
    ReadDlcMetadata(document, pods.emplace_back());
    ReadDlcSpec(document, pods.back());
    document.Finish();
    RETURN_IF_ERROR(errors.status());
  }
  return pods;
}

}  // namespace optcache::config
