#include "config/configuration.h"

#include <algorithm>
#include <utility>

#include "config/internal/resources.h"
#include "config/internal/yaml_document.h"
#include "config/internal/yaml_fields.h"

namespace optcache::config {
namespace internal {

void ReadMetadata(YamlMap& document, std::string& name, std::string& name_space) {
  if (!document.Has("metadata")) document.Fail("metadata", "missing, write metadata: {name: …}");
  document.In("metadata", [&](YamlMap& metadata) {
    metadata.NeedSubdomain("name", name);
    metadata.ReadLabel("namespace", name_space);
    metadata.Ignore("labels");
    metadata.Ignore("annotations");
  });
}

}  // namespace internal

namespace {

using internal::YamlErrors;
using internal::YamlMap;

constexpr std::string_view kApiVersion = "optcache.io/v1alpha1";
constexpr std::string_view kKinds = "Dataset, CachePlan";

void ReadResource(YamlMap& document, Configuration& out) {
  std::string version;
  document.Need("apiVersion", version, kApiVersion);
  if (version != kApiVersion) {
    document.Fail("apiVersion",
                  "'" + version + "' is not known, allowed: " + std::string(kApiVersion));
  }
  std::string kind;
  document.Need("kind", kind, kKinds);
  document.Ignore("status");
  if (kind == "Dataset") {
    out.datasets.push_back(internal::ReadDataset(document));
  } else if (kind == "CachePlan") {
    out.plans.push_back(internal::ReadCachePlan(document));
  } else {
    document.Fail("kind", "'" + kind + "' is not known, allowed: " + std::string(kKinds));
  }
  document.Finish();
}

std::string Qualified(const CachePlan& plan) {
  return plan.name_space + "/" + plan.dataset;
}

}  // namespace

std::string Dataset::Address() const {
  if (s3) return dataset::AddressOf(*s3);
  return file ? file->path : http->base_url;
}

ByteCount Capacity::Of(ByteCount dataset_bytes) const {
  if (percent <= 0) return bytes;
  return static_cast<ByteCount>(static_cast<double>(dataset_bytes) * percent / 100);
}

CachePlan Configuration::PlanOf(const Dataset& dataset) const {
  for (const CachePlan& plan : plans) {
    if (Qualified(plan) == dataset.QualifiedName()) return plan;
  }
  return {.name = dataset.name, .name_space = dataset.name_space, .dataset = dataset.name};
}

Result<Configuration> ParseConfiguration(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<YAML::Node> documents, internal::LoadDocuments(text, file));
  if (documents.empty()) {
    return Error(Code::kInvalidArgument,
                 std::string(file) + ": empty, allowed: " + std::string(kKinds));
  }
  Configuration whole;
  for (const YAML::Node& node : documents) {
    YamlErrors errors(file);
    Configuration part;
    YamlMap document(node, "", errors);
    ReadResource(document, part);
    RETURN_IF_ERROR(errors.status());
    if (Status status = Merge(std::move(part), whole); !status.ok()) {
      return Error(internal::ErrorAt(file, node.Mark(), status.message()));
    }
  }
  return whole;
}

Status Merge(Configuration part, Configuration& whole) {
  for (Dataset& dataset : part.datasets) {
    const std::string name = dataset.QualifiedName();
    if (std::ranges::find(whole.datasets, name, &Dataset::QualifiedName) != whole.datasets.end()) {
      return {Code::kInvalidArgument, "Dataset " + name + " is there twice"};
    }
    whole.datasets.push_back(std::move(dataset));
  }
  for (CachePlan& plan : part.plans) {
    if (std::ranges::find(whole.plans, Qualified(plan), Qualified) != whole.plans.end()) {
      return {Code::kInvalidArgument, "Dataset " + Qualified(plan) + " has two CachePlans"};
    }
    whole.plans.push_back(std::move(plan));
  }
  return OkStatus();
}

Status CheckReferences(const Configuration& whole) {
  for (const CachePlan& plan : whole.plans) {
    if (std::ranges::find(whole.datasets, Qualified(plan), &Dataset::QualifiedName) ==
        whole.datasets.end()) {
      return {Code::kInvalidArgument,
              plan.where + ": there is no Dataset " + Qualified(plan) + " in the files given"};
    }
  }
  return OkStatus();
}

}  // namespace optcache::config
