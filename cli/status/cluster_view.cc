// Turns the lists that the API server gave into rows, and the rows into tables or JSON.
//
// Reading and writing are apart: ReadClusterView makes a plain ClusterView, and both formats are
// written from it. What a machine has cached is summed over the Datasets' statuses. The leader is
// the operator pod whose name stands in a Lease as holder. Conditions that need attention are
// listed below the tables.

#include "cli/status/cluster_view.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cli/rollout/rollout_progress.h"
#include "cli/terminal/text_table.h"
#include "cli/terminal/value_text.h"
#include "kube/conditions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

using kube::ConditionOf;
using kube::ConditionStatus;
using kube::CountAt;
using kube::Find;
using kube::Items;
using kube::Json;
using kube::KeyOf;
using kube::LabelOf;
using kube::NumberAt;
using kube::ParseList;
using kube::TextAt;
using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kComponentLabel = "app.kubernetes.io/component";
constexpr const char* kOperator = "operator";

std::optional<SavedRow> ReadSaved(const Json& saved) {
  if (!saved.is_object()) return std::nullopt;
  return SavedRow{.requests = NumberAt(saved, "/requests").value_or(0),
                  .bytes = NumberAt(saved, "/bytes").value_or(0),
                  .waited_seconds = CountAt(saved, "/waitedSeconds"),
                  .cost = TextAt(saved, "/cost")};
}

DatasetRow ReadDataset(const Json& object, std::map<std::string, ByteCount>& cached_by_machine) {
  const Json& status = Find(object, "/status");
  DatasetRow row{.name = KeyOf(object).ToString(),
                 .ready = std::string(ToText(ConditionOf(object, "Ready").status)),
                 .reason = ConditionOf(object, "Ready").reason,
                 .samples = CountAt(status, "/samples"),
                 .bytes = CountAt(status, "/bytes"),
                 .cached_bytes = CountAt(status, "/cachedBytes"),
                 .granted = CountAt(status, "/capacity/granted"),
                 .saved_rate = CountAt(status, "/capacity/savedBytesPerSecond"),
                 .hit_ratio = TextAt(status, "/hitRatio"),
                 .predicted_hit_ratio = TextAt(status, "/predictedHitRatio"),
                 .saved = ReadSaved(Find(status, "/saved"))};
  for (const Json& node : Items(status, "/nodes")) {
    ++row.nodes;
    cached_by_machine[TextAt(node, "/name")] += CountAt(node, "/bytes");
  }
  return row;
}

// Empty: none is under way.
std::string RolloutLine(const Json& object) {
  const auto plan = PlanResourceOf(object);
  if (!plan || plan->phase.empty() || plan->phase == "Complete") return "";
  const RolloutProgress progress = TellRollout(*plan, {});
  return progress.outcome == RolloutOutcome::kUnderWay ? progress.line : "";
}

PlanRow ReadPlan(const Json& object) {
  const Json& spec = Find(object, "/spec");
  const Json& status = Find(object, "/status");
  const Json& nodes = Find(status, "/nodes");
  return {.name = KeyOf(object).ToString(),
          .dataset = TextAt(spec, "/dataset"),
          .retention = TextAt(spec, "/retention"),
          .revision = TextAt(status, "/currentRevision"),
          .available = std::string(ToText(ConditionOf(object, "Available").status)),
          .active = CountAt(nodes, "/active"),
          .desired = CountAt(nodes, "/desired"),
          .phase = TextAt(status, "/rollout/phase"),
          .rollout = RolloutLine(object)};
}

void ReadJobs(const Json& plan, std::vector<JobRow>& rows) {
  for (const Json& job : Items(plan, "/status/jobs")) {
    rows.push_back(
        {.dataset = TextAt(plan, "/metadata/namespace") + "/" + TextAt(plan, "/spec/dataset"),
         .name = TextAt(job, "/name"),
         .ranks = CountAt(job, "/ranks"),
         .pass = CountAt(job, "/pass"),
         .position = CountAt(job, "/position"),
         .rate = TextAt(job, "/rate"),
         .order = TextAt(job, "/order")});
  }
}

PodRow ReadPod(const Json& object, const std::map<std::string, ByteCount>& cached_by_machine) {
  const Json& metadata = Find(object, "/metadata");
  PodRow row{.name = TextAt(metadata, "/name"),
             .machine = TextAt(object, "/spec/nodeName"),
             .component = LabelOf(object, kComponentLabel).value_or(""),
             .ready = ConditionOf(object, "Ready").status == ConditionStatus::kTrue};
  for (const Json& container : Items(object, "/status/containerStatuses"))
    row.restarts += CountAt(container, "/restartCount");
  const auto cached = cached_by_machine.find(row.machine);
  if (row.component == "node" && cached != cached_by_machine.end())
    row.cached_bytes = cached->second;
  return row;
}

// Conditions that are as nobody wants them: "vision/imagenet: Indexed is False (Denied): ...".
void AddNotes(const Json& object, std::vector<std::string>& notes) {
  for (const Json& condition : Items(object, "/status/conditions")) {
    const std::string type = TextAt(condition, "/type");
    const bool inverted =
        type == "Degraded" || type == "ManifestLost" || type == "Stale";  // good when False
    if (TextAt(condition, "/status") != (inverted ? "True" : "False")) continue;
    if (type == "Progressing") continue;  // False: nothing is going on
    notes.push_back(fmt::format("{} {}: {} is {} ({}): {}", TextAt(object, "/kind"),
                                KeyOf(object).ToString(), type, TextAt(condition, "/status"),
                                TextAt(condition, "/reason"), TextAt(condition, "/message")));
  }
}

Rows DatasetRows(const ClusterView& view) {
  Rows rows = {{"DATASET", "READY", "SAMPLES", "SIZE", "GRANTED", "CACHED", "SAVES", "HIT RATIO",
                "PREDICTED", "NODES"}};
  for (const DatasetRow& row : view.datasets) {
    const bool tells = row.ready != "True" && !row.reason.empty();
    rows.push_back({row.name, tells ? row.ready + " (" + row.reason + ")" : row.ready,
                    row.samples == 0 ? "-" : fmt::format("{}", row.samples),
                    row.bytes == 0 ? "-" : FormatBytes(row.bytes), FormatBytes(row.granted),
                    FormatBytes(row.cached_bytes),
                    row.saved_rate == 0 ? "-" : FormatBytes(row.saved_rate) + "/s",
                    PercentText(row.hit_ratio), PercentText(row.predicted_hit_ratio),
                    fmt::format("{}", row.nodes)});
  }
  return rows;
}

// Empty: nothing was read yet.
std::string SavedTable(const ClusterView& view) {
  Rows rows = {{"DATASET", "SAVED REQUESTS", "SAVED BYTES", "SAVED MONEY", "WAITED"}};
  for (const DatasetRow& row : view.datasets) {
    if (!row.saved) continue;
    rows.push_back({row.name, fmt::format("{}", row.saved->requests),
                    FormatSignedBytes(row.saved->bytes),
                    row.saved->cost.empty() ? "-" : row.saved->cost,
                    fmt::format("{} s", row.saved->waited_seconds)});
  }
  if (rows.size() == 1) return "";
  return "\nSaved since the Datasets were made, compared with the same reads without a cache:\n" +
         FormatTable(std::move(rows));
}

Rows PlanRows(const ClusterView& view) {
  Rows rows = {{"PLAN", "DATASET", "RETENTION", "REVISION", "AVAILABLE", "ACTIVE"}};
  for (const PlanRow& row : view.plans) {
    rows.push_back({row.name, row.dataset, row.retention, row.revision.empty() ? "-" : row.revision,
                    row.available, fmt::format("{}/{}", row.active, row.desired)});
  }
  return rows;
}

Rows JobRows(const ClusterView& view) {
  Rows rows = {{"JOB", "DATASET", "RANKS", "PASS", "POSITION", "RATE", "ORDER"}};
  for (const JobRow& row : view.jobs) {
    rows.push_back({row.name, row.dataset, fmt::format("{}", row.ranks),
                    fmt::format("{}", row.pass), fmt::format("{}", row.position),
                    row.rate.empty() ? "-" : row.rate, row.order});
  }
  return rows;
}

Rows PodRows(const ClusterView& view) {
  Rows rows = {{"MACHINE", "POD", "COMPONENT", "READY", "RESTARTS", "CACHED"}};
  for (const PodRow& row : view.pods) {
    rows.push_back({row.machine.empty() ? "-" : row.machine, row.name,
                    row.leads ? row.component + ", leads" : row.component, row.ready ? "yes" : "no",
                    fmt::format("{}", row.restarts),
                    row.component == "node" ? FormatBytes(row.cached_bytes) : "-"});
  }
  return rows;
}

// Other Leases of those namespaces are held by others.
Status MarkLeaders(std::string_view leases, std::vector<PodRow>& pods) {
  ASSIGN_OR_RETURN(const Json list, ParseList(leases, "Leases"));
  for (const Json& lease : Items(list, "/items")) {
    const std::string holder = TextAt(lease, "/spec/holderIdentity");
    for (PodRow& pod : pods) {
      const bool leads = holder == pod.name || holder.starts_with(pod.name + "_");
      pod.leads = pod.leads || (leads && pod.component == kOperator);
    }
  }
  return OkStatus();
}

}  // namespace

std::set<std::string> OperatorNamespaces(std::string_view pods) {
  std::set<std::string> namespaces;
  const Json list = Json::parse(pods, nullptr, /*allow_exceptions=*/false);
  for (const Json& pod : Items(list, "/items")) {
    if (LabelOf(pod, kComponentLabel) == kOperator) namespaces.insert(KeyOf(pod).ns);
  }
  return namespaces;
}

Result<ClusterView> ReadClusterView(const ClusterAnswers& answers) {
  ClusterView view{.notes = answers.notes};
  ASSIGN_OR_RETURN(const Json resources, ParseList(answers.resources, "Datasets and CachePlans"));
  ASSIGN_OR_RETURN(const Json pods, ParseList(answers.pods, "pods"));
  std::map<std::string, ByteCount> cached_by_machine;
  for (const Json& object : Items(resources, "/items")) {
    if (TextAt(object, "/kind") == "Dataset") {
      view.datasets.push_back(ReadDataset(object, cached_by_machine));
    } else {
      view.plans.push_back(ReadPlan(object));
      ReadJobs(object, view.jobs);
    }
    AddNotes(object, view.notes);
  }
  for (const Json& object : Items(pods, "/items"))
    view.pods.push_back(ReadPod(object, cached_by_machine));
  for (const std::string& leases : answers.leases)
    RETURN_IF_ERROR(MarkLeaders(leases, view.pods));
  std::ranges::sort(view.pods, {}, [](const PodRow& pod) {
    return std::tie(pod.component, pod.machine, pod.name);
  });
  return view;
}

std::string FormatClusterView(const ClusterView& view) {
  std::string text = view.datasets.empty()
                         ? "There is no Dataset; docs/user/quickstart.md shows how to make one.\n"
                         : FormatTable(DatasetRows(view));
  text += SavedTable(view);
  if (!view.plans.empty()) text += "\n" + FormatTable(PlanRows(view));
  for (const PlanRow& row : view.plans) {
    if (!row.rollout.empty()) text += row.name + ": " + row.rollout + "\n";
  }
  text += "\n";
  text += view.jobs.empty() ? "No training job is attached.\n" : FormatTable(JobRows(view));
  if (!view.pods.empty()) text += "\n" + FormatTable(PodRows(view));
  for (std::size_t i = 0; i < view.notes.size(); ++i)
    text += (i == 0 ? "\n" : "") + view.notes[i] + "\n";
  return text;
}

std::string ToJson(const ClusterView& view) {
  nlohmann::ordered_json json = {{"datasets", Json::array()},
                                 {"plans", Json::array()},
                                 {"jobs", Json::array()},
                                 {"pods", Json::array()},
                                 {"notes", view.notes}};
  for (const DatasetRow& row : view.datasets) {
    json["datasets"].push_back({{"name", row.name},
                                {"ready", row.ready},
                                {"reason", row.reason},
                                {"samples", row.samples},
                                {"bytes", row.bytes},
                                {"cachedBytes", row.cached_bytes},
                                {"granted", row.granted},
                                {"savedBytesPerSecond", row.saved_rate},
                                {"hitRatio", row.hit_ratio},
                                {"predictedHitRatio", row.predicted_hit_ratio},
                                {"nodes", row.nodes}});
    if (!row.saved) continue;
    nlohmann::ordered_json& saved = json["datasets"].back()["saved"];
    saved = {{"requests", row.saved->requests},
             {"bytes", row.saved->bytes},
             {"waitedSeconds", row.saved->waited_seconds}};
    if (!row.saved->cost.empty()) saved["cost"] = row.saved->cost;
  }
  for (const PlanRow& row : view.plans) {
    json["plans"].push_back({{"name", row.name},
                             {"dataset", row.dataset},
                             {"retention", row.retention},
                             {"revision", row.revision},
                             {"available", row.available},
                             {"active", row.active},
                             {"desired", row.desired},
                             {"phase", row.phase},
                             {"rollout", row.rollout}});
  }
  for (const JobRow& row : view.jobs) {
    json["jobs"].push_back({{"dataset", row.dataset},
                            {"name", row.name},
                            {"ranks", row.ranks},
                            {"pass", row.pass},
                            {"position", row.position},
                            {"rate", row.rate},
                            {"order", row.order}});
  }
  for (const PodRow& row : view.pods) {
    json["pods"].push_back({{"name", row.name},
                            {"machine", row.machine},
                            {"component", row.component},
                            {"ready", row.ready},
                            {"leads", row.leads},
                            {"restarts", row.restarts},
                            {"cachedBytes", row.cached_bytes}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace optcache::cli
