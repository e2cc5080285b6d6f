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

#include "api/fields.h"
#include "base/utf8.h"
#include "config/configuration.h"
#include "config/internal/yaml_document.h"

namespace optcache::config {
namespace {

using api::Fields;
using internal::YamlDocument;
using Shape = YamlDocument::Shape;

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

void NeedWord(Fields& document, std::string_view name, std::string_view allowed) {
  std::string word;
  document.Need(name, word, kMaxTextBytes, allowed);
  if (word != allowed)
    document.Fault(name, "'" + word + "' is not known, allowed: " + std::string(allowed));
}

void ReadDlcMetadata(Fields& document, DlcPod& pod) {
  document.NeedIn("metadata", "write metadata: {name: …}", [&](Fields& metadata) {
    metadata.NeedSubdomain("name", pod.name);
    if (metadata.Has("namespace")) metadata.ReadLabel("namespace", pod.name_space);
    metadata.Read("labels", pod.labels, kMaxListItems, kMaxTextBytes);
    // kubectl keeps the whole object in one of them.
    metadata.Read("annotations", pod.annotations, kMaxListItems, kMaxFileBytes);
    for (const char* const name : kServersFields)
      metadata.Ignore(name);
  });
}

void ReadDlcSource(Fields& job, DlcJob& out) {
  job.NeedIn("datasource", "write datasource: {bucket: …}", [&](Fields& source) {
    source.Read("name", out.source_name, kMaxTextBytes);
    source.Need("bucket", out.bucket, kMaxTextBytes, "the name of a bucket");
    source.Read("etag", out.etag, kMaxTextBytes);
    source.In("keys", [&](Fields& keys) {
      for (std::size_t i = 0; i < kDlcSets.size(); ++i) {
        keys.In(kDlcSets[i], [&](Fields& set) {
          set.Read("samples", out.keys[i].samples, kMaxListItems, kMaxTextBytes);
          set.Read("targets", out.keys[i].targets, kMaxListItems, kMaxTextBytes);
          set.Read("manifests", out.keys[i].manifests, kMaxListItems, kMaxTextBytes);
        });
      }
    });
  });
}

void ReadDlcQos(Fields& job, DlcJob& out) {
  job.In("qos", [&](Fields& qos) {
    if (qos.Has("usecache")) qos.Read("usecache", out.use_cache.emplace());
    qos.Read("lazyloading", out.lazy_loading);
    qos.Read("MaxPartMill", out.max_part_mill, std::numeric_limits<std::int64_t>::min(),
             std::numeric_limits<std::int64_t>::max());
  });
  job.In("configurationsfromconfigmap",
         [&](Fields& map) { map.Read("name", out.qos_config_map, kMaxTextBytes); });
}

// In the order in which Kubernetes documents them.
void ReadDlcContainer(const YamlDocument& yaml, Fields& job, DlcJob& out) {
  const auto keep = [&](const char* name, YamlValue value) {
    out.container.emplace_back(name, std::move(value));
  };
  std::string image;
  job.Need("image", image, kMaxTextBytes, "the name of an image");
  keep("image", {.value = image});
  for (const char* const name : kListFields) {
    if (job.Has(name)) keep(name, yaml.ReadValue(job, name, Shape::kList));
  }
  for (const char* const name : kMapFields) {
    if (job.Has(name)) keep(name, yaml.ReadValue(job, name, Shape::kMap));
  }
  for (const char* const name : kTextFields) {
    std::string text;
    job.Read(name, text, kMaxTextBytes);
    if (!text.empty()) keep(name, {.value = text});
  }
  for (const char* const name : kFlagFields) {
    bool flag = false;
    job.Read(name, flag);
    if (flag) keep(name, {.value = true});
  }
}

void ReadDlcJob(const YamlDocument& yaml, Fields& job, DlcJob& out) {
  if (!job.Has("name")) job.Fault("name", "missing, write name: …");
  job.ReadLabel("name", out.name);
  ReadDlcContainer(yaml, job, out);
  ReadDlcSource(job, out);
  ReadDlcQos(job, out);
}

void ReadDlcSpec(const YamlDocument& yaml, Fields& document, DlcPod& pod) {
  document.NeedIn("spec", "write spec: {jobs: …}", [&](Fields& spec) {
    spec.In("secret", [&](Fields& secret) { secret.NeedSubdomain("name", pod.secret); });
    spec.ForEach("jobs", kMaxListItems,
                 [&](Fields& job) { ReadDlcJob(yaml, job, pod.jobs.emplace_back()); });
    if (pod.jobs.empty()) spec.Fault("jobs", "missing or empty, write a job at least");
    if (spec.Has("volumes")) pod.volumes = yaml.ReadValue(spec, "volumes", Shape::kList);
    spec.Read("labels", pod.pod_labels, kMaxListItems, kMaxTextBytes);
    spec.Read("nodeSelector", pod.node_selector, kMaxListItems, kMaxTextBytes);
    spec.Read("nodeName", pod.node_name, kMaxTextBytes);
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
    ASSIGN_OR_RETURN(const YamlDocument yaml, YamlDocument::Read(node, file));
    api::Errors errors(yaml);
    Fields document(yaml.root(), "", errors);
    NeedWord(document, "apiVersion", kDlcVersion);
    NeedWord(document, "kind", kDlcKind);
    document.Ignore("status");
    ReadDlcMetadata(document, pods.emplace_back());
    ReadDlcSpec(yaml, document, pods.back());
    document.Finish();
    RETURN_IF_ERROR(errors.status());
  }
  return pods;
}

}  // namespace optcache::config
