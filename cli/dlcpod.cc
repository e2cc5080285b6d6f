#include "cli/dlcpod.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

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
using config::YamlValue;

constexpr const char* kSecretFolder = "/secret";  // where DLCache mounts keys
constexpr const char* kSharedFolder = "/dev/shm";
constexpr const char* kSharedVolume = "dev-shm";
constexpr const char* kSecretVolume = "secret";
constexpr const char* kUnnamed = "data";
// With "-validation-manifests" it has 63 characters, the most that a Dataset's name may have.
constexpr std::size_t kMaxSourceName = 42;
constexpr std::size_t kMaxDatasetsOfPod = 16;  // as the injector takes them

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

struct DatasetOfJob {
  std::string name;
  OrderedJson json;
  std::vector<std::string> remarks;
};

OrderedJson Metadata(const std::string& name, const DlcPod& pod) {
  OrderedJson metadata = {{"name", name}};
  if (!pod.name_space.empty()) metadata["namespace"] = pod.name_space;
  return metadata;
}

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
          {"metadata", Metadata(name, pod)},
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
      datasets.push_back({.name = name,
                          .json = DatasetJson(name, pod, job.bucket, *selection, region),
                          .remarks = RemarksOnKeys(keys)});
    }
  }
  return datasets;
}

// Of the first Dataset: what holds for all of them.
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

// --- The Job

bool UsesCache(const DlcJob& job) {
  return job.use_cache.value_or(false) || !job.qos_config_map.empty();
}

bool HasKeys(const DlcJob& job) {
  return std::ranges::any_of(job.keys, [](const DlcKeys& set) {
    return !set.samples.empty() || !set.targets.empty() || !set.manifests.empty();
  });
}

// The others read the bucket themselves.
bool HasDatasets(const DlcJob& job) {
  return UsesCache(job) && HasKeys(job);
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

// `datasets` are those of the pod, `clients` the containers that use them.
OrderedJson JobJson(const DlcPod& pod, OrderedJson containers,
                    const std::vector<std::string>& datasets,
                    const std::vector<std::string>& clients) {
  OrderedJson metadata = Metadata(pod.name, pod);
  if (!pod.labels.empty()) metadata["labels"] = pod.labels;
  if (const auto own = OwnAnnotations(pod); !own.empty()) metadata["annotations"] = own;
  OrderedJson of_pod = OrderedJson::object();
  if (!pod.pod_labels.empty()) of_pod["labels"] = pod.pod_labels;
  if (!datasets.empty()) {
    of_pod["labels"]["optcache.io/inject"] = "true";
    of_pod["annotations"]["optcache.io/dataset"] = fmt::format("{}", fmt::join(datasets, ","));
    if (clients.size() < pod.jobs.size())
      of_pod["annotations"]["optcache.io/containers"] = fmt::format("{}", fmt::join(clients, ","));
  }
  OrderedJson pod_template = OrderedJson::object();
  if (!of_pod.empty()) pod_template["metadata"] = of_pod;
  pod_template["spec"] = PodSpec(pod, std::move(containers));
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", metadata},
          {"spec", {{"backoffLimit", 0}, {"template", pod_template}}}};
}

Status DatasetsDiffer(const std::string& name) {
  return {Code::kInvalidArgument,
          "two jobs have a datasource that makes a Dataset " + name +
              ", with another bucket, another secret or other keys: give one another "
              "datasource.name"};
}

// `more` of these, each once; kInvalidArgument if two of one name differ.
Status Merge(std::vector<DatasetOfJob> more, std::vector<DatasetOfJob>& datasets) {
  for (DatasetOfJob& each : more) {
    const auto same = std::ranges::find(datasets, each.name, &DatasetOfJob::name);
    if (same == datasets.end()) {
      datasets.push_back(std::move(each));
    } else if (same->json != each.json) {
      return DatasetsDiffer(each.name);
    }
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<YamlDocument>> ConvertDlcPod(const DlcPod& pod, const std::string& region) {
  std::vector<DatasetOfJob> datasets;
  std::vector<std::string> clients;
  OrderedJson containers = OrderedJson::array();
  for (const DlcJob& job : pod.jobs) {
    std::vector<DatasetOfJob> own;
    if (HasDatasets(job)) {
      ASSIGN_OR_RETURN(own, DatasetsOf(pod, job, region));
    }
    const std::string first = own.empty() ? "" : own.front().name;
    if (!own.empty()) clients.push_back(job.name);
    RETURN_IF_ERROR(Merge(std::move(own), datasets));
    // Containers open the pod's first Dataset unless they are told another.
    const bool is_usual = first.empty() || first == datasets.front().name;
    containers.push_back(ContainerOf(pod, job, is_usual ? "" : first));
  }
  if (datasets.size() > kMaxDatasetsOfPod) {
    return Error(Code::kInvalidArgument,
                 fmt::format("its jobs read {} lists of keys, and a pod can use {} Datasets: split "
                             "it into several DLCPods",
                             datasets.size(), kMaxDatasetsOfPod));
  }
  std::vector<YamlDocument> documents;
  std::vector<std::string> names;
  for (const DatasetOfJob& dataset : datasets) {
    std::vector<std::string> remarks;
    if (documents.empty()) remarks = RemarksOnSource(pod, region);
    remarks.insert(remarks.end(), dataset.remarks.begin(), dataset.remarks.end());
    documents.push_back({.remarks = std::move(remarks), .json = dataset.json.dump()});
    names.push_back(dataset.name);
  }
  documents.push_back({.remarks = RemarksOnPod(pod, !datasets.empty()),
                       .json = JobJson(pod, std::move(containers), names, clients).dump()});
  return documents;
}

Result<std::vector<YamlDocument>> ConvertDlcPods(const std::vector<DlcPod>& pods,
                                                 const std::string& region) {
  std::vector<YamlDocument> all;
  std::map<std::tuple<std::string, std::string, std::string>, std::string> written;
  for (const DlcPod& pod : pods) {
    const std::string context = "DLCPod " + pod.name;
    auto documents = ConvertDlcPod(pod, region);
    if (!documents) return Error(std::move(documents).error().WithContext(context));
    for (YamlDocument& document : *documents) {
      const OrderedJson json = OrderedJson::parse(document.json);
      const std::string kind = json["kind"];
      const std::string name = json["metadata"]["name"];
      const auto [earlier, is_new] =
          written.try_emplace({kind, pod.name_space, name}, document.json);
      if (is_new) {
        all.push_back(std::move(document));
      } else if (earlier->second != document.json) {
        Status differ = kind == "Job" ? Status(Code::kInvalidArgument,
                                               "another DLCPod has this name, and differs: give "
                                               "one another metadata.name")
                                      : DatasetsDiffer(name);
        return Error(std::move(differ).WithContext(context));
      }
    }
  }
  return all;
}

}  // namespace optcache::cli
