#include "cli/convert/dlcpod.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/convert/dlcpod_datasets.h"
#include "cli/convert/dlcpod_job.h"

namespace optcache::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using config::DlcJob;
using config::DlcPod;

// kubectl creates a resource without a namespace there, unless it is told another.
constexpr const char* kUsualNamespace = "default";
constexpr std::size_t kMaxDatasetsOfPod = 16;  // as the injector takes them

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
    } else if (same->document.json != each.document.json) {
      return DatasetsDiffer(each.name);
    }
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<YamlDocument>> ConvertDlcPod(const DlcPod& pod, const std::string& region) {
  std::vector<DatasetOfJob> datasets;
  DlcPodDatasets of_pod;
  for (const DlcJob& job : pod.jobs) {
    std::vector<DatasetOfJob> own;
    if (HasDatasets(job)) {
      ASSIGN_OR_RETURN(own, DatasetsOf(pod, job, region));
    }
    of_pod.first_of_job.push_back(own.empty() ? "" : own.front().name);
    RETURN_IF_ERROR(Merge(std::move(own), datasets));
  }
  if (datasets.size() > kMaxDatasetsOfPod) {
    return Error(Code::kInvalidArgument,
                 fmt::format("its jobs read {} lists of keys, and a pod can use {} Datasets: split "
                             "it into several DLCPods",
                             datasets.size(), kMaxDatasetsOfPod));
  }
  std::vector<YamlDocument> documents;
  for (DatasetOfJob& dataset : datasets) {
    of_pod.names.push_back(dataset.name);
    documents.push_back(std::move(dataset.document));
  }
  if (!documents.empty()) {
    std::vector<std::string> remarks = RemarksOnSource(pod, region);
    std::ranges::move(documents.front().remarks, std::back_inserter(remarks));
    documents.front().remarks = std::move(remarks);
  }
  documents.push_back(JobOf(pod, of_pod));
  return documents;
}

Result<std::vector<YamlDocument>> ConvertDlcPods(const std::vector<DlcPod>& pods,
                                                 const std::string& region) {
  std::vector<YamlDocument> all;
  std::set<std::string> printed;
  std::map<std::tuple<std::string, std::string, std::string>, OrderedJson> contents;
  for (const DlcPod& pod : pods) {
    const std::string context = "DLCPod " + pod.name;
    auto documents = ConvertDlcPod(pod, region);
    if (!documents) return Error(std::move(documents).error().WithContext(context));
    for (YamlDocument& document : *documents) {
      if (!printed.insert(document.json).second) continue;
      OrderedJson json = OrderedJson::parse(document.json);
      json["metadata"].erase("namespace");
      const std::string kind = json["kind"];
      const std::string name = json["metadata"]["name"];
      const std::string name_space = pod.name_space.empty() ? kUsualNamespace : pod.name_space;
      const auto [earlier, is_new] = contents.try_emplace({kind, name_space, name}, json);
      if (!is_new && earlier->second != json) {
        Status differ = kind == "Job" ? Status(Code::kInvalidArgument,
                                               "another DLCPod has this name, and differs: give "
                                               "one another metadata.name")
                                      : DatasetsDiffer(name);
        return Error(std::move(differ).WithContext(context));
      }
      all.push_back(std::move(document));
    }
  }
  return all;
}

}  // namespace optcache::cli
