// Turns a pod of DLCache into a Job, and says as remarks what changes by that.
//
// Fields of containers are copied as they are; env, mounts and volumes are added only where the pod
// has none of that name or path. What DLCache ignored and Kubernetes obeys is listed, since a field
// may take effect here for the first time.

#include "cli/convert/dlcpod_job.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/convert/dlcpod_datasets.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using config::DlcJob;
using config::DlcPod;
using config::YamlValue;

constexpr const char* kSecretFolder = "/secret";  // where DLCache mounts keys
constexpr const char* kSharedFolder = "/dev/shm";
constexpr const char* kSharedVolume = "dev-shm";
constexpr const char* kSecretVolume = "secret";

OrderedJson ToJson(const YamlValue& value) {
  return std::visit(
      [](const auto& held) -> OrderedJson {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<Held, YamlValue::List>) {
          OrderedJson list = OrderedJson::array();
          for (const YamlValue& item : held)
            list.push_back(ToJson(item));
          return list;
        } else if constexpr (std::is_same_v<Held, YamlValue::Map>) {
          OrderedJson map = OrderedJson::object();
          for (const auto& [key, member] : held)
            map[key] = ToJson(member);
          return map;
        } else {
          return held;
        }
      },
      value.value);
}

// Unless the list has an item with the same `field`.
void AppendUnlessThere(OrderedJson& owner, const char* list, const char* field, OrderedJson item) {
  OrderedJson& items = owner[list];
  if (items.is_null()) items = OrderedJson::array();
  const bool there = std::ranges::any_of(items, [&](const OrderedJson& each) {
    return each.is_object() && each.contains(field) && each[field] == item[field];
  });
  if (!there) items.push_back(std::move(item));
}

OrderedJson ContainerOf(const DlcPod& pod, const DlcJob& job, const std::string& dataset) {
  OrderedJson container = {{"name", job.name}};
  for (const auto& [name, value] : job.container)
    container[name] = ToJson(value);
  AppendUnlessThere(container, "env", "name", {{"name", "JOBNAME"}, {"value", job.name}});
  if (!dataset.empty())
    AppendUnlessThere(container, "env", "name", {{"name", "OPTCACHE_DATASET"}, {"value", dataset}});
  AppendUnlessThere(container, "volumeMounts", "mountPath",
                    {{"name", kSharedVolume}, {"mountPath", kSharedFolder}});
  if (!HasDatasets(job) && !pod.secret.empty()) {
    AppendUnlessThere(container, "volumeMounts", "mountPath",
                      {{"name", kSecretVolume}, {"mountPath", kSecretFolder}, {"readOnly", true}});
  }
  return container;
}

void RemarkOnJob(const DlcJob& job, std::vector<std::string>& remarks) {
  const auto remark = [&](std::string_view text) {
    remarks.push_back(fmt::format("{}: {}", job.name, text));
  };
  if (!job.qos_config_map.empty()) {
    remark(
        fmt::format("qos comes from ConfigMap {}, which this command does not read. It assumes "
                    "usecache: true. If it is false there, remove the Datasets of this container.",
                    job.qos_config_map));
  } else if (!job.use_cache) {
    remark(
        "qos.usecache is not set, which DLCache takes for false: there is no Dataset. If this "
        "container is to use the cache, set it to true and convert again.");
  } else if (!*job.use_cache) {
    remark("qos.usecache is false: there is no Dataset, and the container reads the bucket.");
  }
  if (UsesCache(job) && !HasKeys(job))
    remark("datasource.keys is empty: there is no Dataset, and the container reads the bucket.");
  if (job.lazy_loading) {
    remark(
        "qos.lazyloading is left out: samples are read before training asks for them, as far as "
        "memory allows.");
  }
  if (job.max_part_mill) {
    remark(
        "qos.MaxPartMill is left out: the annotation optcache.io/arena sets the shared memory for "
        "samples.");
  }
  if (!job.etag.empty()) {
    remark("datasource.etag is left out: the index of a Dataset has the ETag of every object.");
  }
}

// Fields that DLCache's operator does not hand on.
std::set<std::string_view> NewlyInForce(const DlcPod& pod) {
  std::set<std::string_view> fields;
  if (!pod.pod_labels.empty()) fields.insert("labels");
  for (const DlcJob& job : pod.jobs) {
    for (const auto& [name, value] : job.container) {
      if (name == "args" || name == "volumeMounts") fields.insert(name);
      if (name == "resources" && ToJson(value).contains("limits"))
        fields.insert("resources.limits");
    }
  }
  return fields;
}

std::vector<std::string> RemarksOnPod(const DlcPod& pod, bool uses_cache) {
  std::vector<std::string> remarks;
  if (uses_cache) {
    remarks.emplace_back(
        "Change the training script: it opens its data by optcache instead of DLCJobDataset. See "
        "docs/user/dlcache.md.");
  }
  for (const DlcJob& job : pod.jobs)
    RemarkOnJob(job, remarks);
  if (const auto fields = NewlyInForce(pod); !fields.empty()) {
    remarks.push_back(fmt::format("DLCache ignores these fields, but they take effect here: {}.",
                                  fmt::join(fields, ", ")));
  }
  if (!pod.node_name.empty()) {
    remarks.emplace_back(
        "nodeName bypasses the scheduler, which prefers machines that hold the Dataset. Remove it "
        "unless the pod has to run there.");
  }
  if (pod.host_network) {
    remarks.emplace_back(
        "A pod with hostNetwork cannot use the S3 endpoint (optcache.io/s3-endpoint).");
  }
  if (pod.has_node_sequence) {
    remarks.emplace_back("nodesequence is left out: DLCache's operator writes it for itself.");
  }
  return remarks;
}

OrderedJson PodSpec(const DlcPod& pod, OrderedJson containers) {
  OrderedJson spec = {{"restartPolicy", "Never"}};
  if (!pod.node_name.empty()) spec["nodeName"] = pod.node_name;
  if (!pod.node_selector.empty()) spec["nodeSelector"] = pod.node_selector;
  if (pod.host_network) spec["hostNetwork"] = true;
  spec["containers"] = std::move(containers);
  if (pod.volumes) spec["volumes"] = ToJson(*pod.volumes);
  AppendUnlessThere(spec, "volumes", "name",
                    {{"name", kSharedVolume}, {"emptyDir", {{"medium", "Memory"}}}});
  if (!pod.secret.empty() && !std::ranges::all_of(pod.jobs, HasDatasets)) {
    AppendUnlessThere(spec, "volumes", "name",
                      {{"name", kSecretVolume}, {"secret", {{"secretName", pod.secret}}}});
  }
  return spec;
}

// Without what kubectl and DLCache's operator write for themselves.
std::map<std::string, std::string> OwnAnnotations(const DlcPod& pod) {
  std::map<std::string, std::string> annotations = pod.annotations;
  annotations.erase("kubectl.kubernetes.io/last-applied-configuration");
  annotations.erase("spec");
  return annotations;
}

OrderedJson Containers(const DlcPod& pod, const DlcPodDatasets& datasets) {
  OrderedJson containers = OrderedJson::array();
  for (std::size_t i = 0; i < pod.jobs.size(); ++i) {
    const std::string& first = datasets.first_of_job[i];
    const bool is_usual = first.empty() || first == datasets.names.front();
    containers.push_back(ContainerOf(pod, pod.jobs[i], is_usual ? "" : first));
  }
  return containers;
}

// The containers that use Datasets.
std::vector<std::string> ClientsOf(const DlcPod& pod, const DlcPodDatasets& datasets) {
  std::vector<std::string> clients;
  for (std::size_t i = 0; i < pod.jobs.size(); ++i) {
    if (!datasets.first_of_job[i].empty()) clients.push_back(pod.jobs[i].name);
  }
  return clients;
}

OrderedJson JobJson(const DlcPod& pod, const DlcPodDatasets& datasets) {
  OrderedJson metadata = MetadataOf(pod.name, pod);
  if (!pod.labels.empty()) metadata["labels"] = pod.labels;
  if (const auto own = OwnAnnotations(pod); !own.empty()) metadata["annotations"] = own;
  OrderedJson of_pod = OrderedJson::object();
  if (!pod.pod_labels.empty()) of_pod["labels"] = pod.pod_labels;
  if (!datasets.names.empty()) {
    of_pod["labels"]["optcache.io/inject"] = "true";
    of_pod["annotations"]["optcache.io/dataset"] =
        fmt::format("{}", fmt::join(datasets.names, ","));
    const std::vector<std::string> clients = ClientsOf(pod, datasets);
    if (clients.size() < pod.jobs.size())
      of_pod["annotations"]["optcache.io/containers"] = fmt::format("{}", fmt::join(clients, ","));
  }
  OrderedJson pod_template = OrderedJson::object();
  if (!of_pod.empty()) pod_template["metadata"] = of_pod;
  pod_template["spec"] = PodSpec(pod, Containers(pod, datasets));
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata},
          {"spec", {{"backoffLimit", 0}, {"template", pod_template}}}};
}

}  // namespace

YamlDocument JobOf(const DlcPod& pod, const DlcPodDatasets& datasets) {
  return {.remarks = RemarksOnPod(pod, !datasets.names.empty()),
          .json = JobJson(pod, datasets).dump()};
}

}  // namespace optcache::cli
