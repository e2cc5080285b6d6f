// Lists Datasets of a cluster by what they have in the cache, with a total.
//
// One kubectl call gets all of them; names are chosen afterwards, so that a missing one is named.
// Numbers are those of the statuses, which the operator writes.

#include "cli/datasets/dataset_usage.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/cluster/cluster_questions.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/print.h"
#include "cli/terminal/text_table.h"
#include "cli/terminal/value_text.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

using kube::CountAt;
using kube::Json;
using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kDuMore =
    R"(BYTES is the size of the source, GRANTED what nodes may keep of it in memory, and CACHED what they keep now. PART is
CACHED divided by BYTES. A job that reads every sample once an epoch cannot get a larger part of its reads from a cache
of that size.

Examples:
  kubectl optcache datasets du
  kubectl optcache datasets du imagenet -n vision --nodes
  kubectl optcache datasets du -A -o json)";

struct DuFlags {
  std::vector<std::string> names;
  std::string name_space;
  bool all_namespaces = false;
  bool nodes = false;
  std::string output = "text";
  KubectlOptions kubectl;
};

DatasetUsage UsageOf(const Json& dataset) {
  const Json& status = kube::Find(dataset, "/status");
  DatasetUsage usage{.name = kube::KeyOf(dataset).ToString(),
                     .samples = CountAt(status, "/samples"),
                     .bytes = CountAt(status, "/bytes"),
                     .granted = CountAt(status, "/capacity/granted"),
                     .cached = CountAt(status, "/cachedBytes")};
  for (const Json& node : kube::Items(status, "/nodes")) {
    usage.nodes.push_back({.name = kube::TextAt(node, "/name"), .cached = CountAt(node, "/bytes")});
  }
  return usage;
}

std::string Part(ByteCount part, ByteCount whole) {
  return whole == 0 ? "-" : PercentText(static_cast<double>(part) / static_cast<double>(whole));
}

DatasetUsage TotalOf(const std::vector<DatasetUsage>& usage) {
  DatasetUsage total{.name = "total"};
  for (const DatasetUsage& one : usage) {
    total.samples += one.samples;
    total.bytes += one.bytes;
    total.granted += one.granted;
    total.cached += one.cached;
  }
  return total;
}

std::vector<std::string> RowOf(const DatasetUsage& usage) {
  const bool is_indexed = usage.samples > 0;
  return {usage.name,
          is_indexed ? std::to_string(usage.samples) : "-",
          is_indexed ? FormatBytes(usage.bytes) : "-",
          FormatBytes(usage.granted),
          FormatBytes(usage.cached),
          Part(usage.cached, usage.bytes)};
}

Json AsJson(const DatasetUsage& usage) {
  return {{"samples", usage.samples},
          {"bytes", usage.bytes},
          {"granted", usage.granted},
          {"cachedBytes", usage.cached}};
}

Status PrintUsage(const DuFlags& flags) {
  std::vector<std::string> words = {"get", "datasets.optcache.io", "--output=json"};
  if (flags.all_namespaces) {
    words.emplace_back("--all-namespaces");
  } else if (!flags.name_space.empty()) {
    words.push_back("--namespace=" + flags.name_space);
  }
  Result<std::string> list = Kubectl(flags.kubectl).Run(words);
  if (!list) return ExplainMissing(std::move(list).error());
  ASSIGN_OR_RETURN(const auto usage, ReadDatasetUsage(*list, flags.names));
  return PrintAs(flags.output, FormatDatasetUsage(usage, flags.nodes), ToJson(usage));
}

}  // namespace

Result<std::vector<DatasetUsage>> ReadDatasetUsage(std::string_view list,
                                                   const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const Json parsed, kube::ParseList(list, "the list of Datasets"));
  std::vector<DatasetUsage> usage;
  std::set<std::string> missing(names.begin(), names.end());
  for (const Json& dataset : kube::Items(parsed, "/items")) {
    const std::string name = kube::KeyOf(dataset).name;
    if (!names.empty() && std::ranges::find(names, name) == names.end()) continue;
    missing.erase(name);
    usage.push_back(UsageOf(dataset));
  }
  if (!missing.empty()) {
    return Error(Code::kNotFound,
                 fmt::format("there is no Dataset {}: `kubectl get datasets -A` lists them all",
                             *missing.begin()));
  }
  std::ranges::sort(usage, [](const DatasetUsage& one, const DatasetUsage& other) {
    return std::pair(other.cached, std::string_view(one.name)) <
           std::pair(one.cached, std::string_view(other.name));
  });
  return usage;
}

std::string FormatDatasetUsage(const std::vector<DatasetUsage>& usage, bool by_node) {
  if (usage.empty()) return "No Datasets found. -A looks in all namespaces\n";
  Rows rows = {{"DATASET", "SAMPLES", "BYTES", "GRANTED", "CACHED", "PART"}};
  for (const DatasetUsage& one : usage) {
    rows.push_back(RowOf(one));
    if (!by_node) continue;
    for (const DatasetUsage::OnNode& node : one.nodes) {
      rows.push_back(
          {"  " + node.name, "", "", "", FormatBytes(node.cached), Part(node.cached, one.bytes)});
    }
  }
  if (usage.size() > 1) rows.push_back(RowOf(TotalOf(usage)));
  return FormatTable(rows);
}

std::string ToJson(const std::vector<DatasetUsage>& usage) {
  Json json = {{"datasets", Json::array()}, {"total", AsJson(TotalOf(usage))}};
  for (const DatasetUsage& one : usage) {
    Json& item = json["datasets"].emplace_back(AsJson(one));
    item["name"] = one.name;
    item["nodes"] = Json::array();
    for (const DatasetUsage::OnNode& node : one.nodes)
      item["nodes"].push_back({{"name", node.name}, {"cachedBytes", node.cached}});
  }
  return json.dump(2) + "\n";
}

void AddDatasetsCommand(CLI::App& app, Action& chosen) {
  CLI::App* const parent =
      app.add_subcommand("datasets", "Show how much memory the Datasets of a cluster use");
  parent->require_subcommand(1);
  const auto flags = std::make_shared<DuFlags>();
  CLI::App* const command = parent->add_subcommand(
      "du", "Print how many bytes Datasets have in their sources and in the memory of nodes");
  command->footer(kDuMore);
  command->add_option("datasets", flags->names, "Print only these Datasets")->type_name("NAME");
  CLI::Option* const one =
      command->add_option("--namespace,-n", flags->name_space,
                          "Namespace of the Datasets; default: that of kubectl's context");
  command
      ->add_flag("--all-namespaces,-A", flags->all_namespaces,
                 "Print the Datasets of all namespaces")
      ->excludes(one);
  command->add_flag("--nodes", flags->nodes, "Print a line for each node, too");
  command->add_option("--output,-o", flags->output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  AddKubectlOptions(*command, flags->kubectl);
  Choose(*command, flags, PrintUsage, chosen);
}

}  // namespace optcache::cli
