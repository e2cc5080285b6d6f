#include "config/configuration.h"

#include <algorithm>
#include <utility>

#include "api/fields.h"
#include "config/internal/yaml_document.h"

namespace optcache::config {
namespace {

using api::Fields;
using internal::YamlDocument;

constexpr std::string_view kApiVersion = "optcache.io/v1alpha1";
constexpr std::string_view kKinds = "Dataset, CachePlan";

void ReadMetadata(Fields& document, std::string& name, std::string& name_space) {
  document.NeedIn("metadata", "write metadata: {name: …}", [&](Fields& metadata) {
    metadata.NeedSubdomain("name", name);
    metadata.ReadLabel("namespace", name_space);
    metadata.Ignore("labels");
    metadata.Ignore("annotations");
  });
}

void ReadDataset(Fields& document, Dataset& dataset) {
  ReadMetadata(document, dataset.name, dataset.name_space);
  dataset.spec = api::ReadDatasetSpec(document, api::Place::kMachine);
}

void ReadCachePlan(Fields& document, CachePlan& plan) {
  ReadMetadata(document, plan.name, plan.name_space);
  plan.spec = api::ReadCachePlanSpec(document);
  if (const nlohmann::json* const spec = document.Find("spec"))
    plan.where = Fields(*spec, "spec", document.errors()).Where("dataset");
}

void ReadResource(Fields& document, Configuration& out) {
  std::string version;
  document.Need("apiVersion", version, kMaxTextBytes, kApiVersion);
  if (version != kApiVersion) {
    document.Fault("apiVersion",
                   "'" + version + "' is not known, allowed: " + std::string(kApiVersion));
  }
  std::string kind;
  document.Need("kind", kind, kMaxTextBytes, kKinds);
  document.Ignore("status");
  if (kind == "Dataset") {
    ReadDataset(document, out.datasets.emplace_back());
  } else if (kind == "CachePlan") {
    ReadCachePlan(document, out.plans.emplace_back());
  } else {
    document.Fault("kind", "'" + kind + "' is not known, allowed: " + std::string(kKinds));
  }
  document.Finish();
}

std::string Qualified(const CachePlan& plan) {
  return plan.name_space + "/" + plan.spec.dataset;
}

}  // namespace

CachePlan Configuration::PlanOf(const Dataset& dataset) const {
  for (const CachePlan& plan : plans) {
    if (Qualified(plan) == dataset.QualifiedName()) return plan;
  }
  return {
      .name = dataset.name, .name_space = dataset.name_space, .spec = {.dataset = dataset.name}};
}

Result<Configuration> ParseConfiguration(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<YAML::Node> documents, internal::LoadDocuments(text, file));
  if (documents.empty()) {
    return Error(Code::kInvalidArgument,
                 std::string(file) + ": empty, allowed: " + std::string(kKinds));
  }
  Configuration whole;
  for (const YAML::Node& node : documents) {
    ASSIGN_OR_RETURN(const YamlDocument yaml, YamlDocument::Read(node, file));
    api::Errors errors(yaml);
    Configuration part;
    Fields document(yaml.root(), "", errors);
    ReadResource(document, part);
    RETURN_IF_ERROR(errors.status());
    if (Status status = Merge(std::move(part), whole); !status.ok()) {
      return Error(Code::kInvalidArgument, yaml.At(yaml.root()) + ": " + status.message());
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
