// Runs tests/cases/reconcile/*.yaml: what is observed of one Dataset, and what is then decided. A
// case says of a decision what it is about; conditions and events it says whole.

#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "operator/reconcile/dataset/decide.h"
#include "support/source_dir.h"

namespace optcache::reconcile {
namespace {

using kube::Json;

Json ToJson(const YAML::Node& node) {
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node)
      list.push_back(ToJson(item));
    return list;
  }
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& item : node)
      object[item.first.as<std::string>()] = ToJson(item.second);
    return object;
  }
  if (!node.IsScalar()) return nullptr;
  const bool quoted = node.Tag() == "!";
  const Json plain = Json::parse(node.Scalar(), nullptr, /*allow_exceptions=*/false);
  return quoted || plain.is_discarded() ? Json(node.Scalar()) : plain;
}

ByteCount BytesAt(const Json& json, std::string_view pointer) {
  const std::string text = kube::TextAt(json, pointer);
  return text.empty() ? 0 : ParseQuantity(text).value();
}

double RealAt(const Json& json, const char* name) {
  return json.value(name, 0.0);
}

IndexJob JobFrom(const Json& json) {
  const std::string state = json.value("state", "Running");
  return {.name = json.at("name"),
          .uid = json.value("uid", "job-uid"),
          .owner_uid = json.value("owner", "dataset-uid"),
          .deleting = json.value("deleting", false),
          .state = state == "Succeeded" ? JobState::kSucceeded
                   : state == "Failed"  ? JobState::kFailed
                                        : JobState::kRunning,
          .created_at = RealAt(json, "createdAt"),
          .has_pod = json.value("hasPod", true),
          .finished_at = RealAt(json, "finishedAt"),
          .result = json.contains("result") ? json["result"].dump() : "",
          .trouble = json.value("trouble", "")};
}

PlanObject PlanFrom(const Json& json) {
  return {.name = json.at("name"),
          .uid = json.value("uid", "plan-uid"),
          .created = json.value("created", ""),
          .made_by_us = json.value("ours", false),
          .spec = api::ParseCachePlanSpec(json)};
}

Placed PlacedFrom(const Json& json) {
  Placed placed{.members = json.value("members", std::vector<std::string>()),
                .granted = BytesAt(json, "/granted"),
                .on_disk = BytesAt(json, "/onDisk"),
                .guaranteed = BytesAt(json, "/guaranteed"),
                .maximum = BytesAt(json, "/maximum"),
                .read = RealAt(json, "read"),
                .saved = RealAt(json, "saved"),
                .why = json.value("why", ""),
                .message = json.value("message", "")};
  for (const auto reason : {PlacedReason::kPlaced, PlacedReason::kNoNodes,
                            PlacedReason::kNoMatchingNode, PlacedReason::kNoMemory}) {
    if (ToText(reason) == json.value("reason", "Placed")) placed.reason = reason;
  }
  return placed;
}

CacheView CacheFrom(const Json& json) {
  CacheView view{.manifest_digest = json.value("manifest", ""),
                 .manifest_holders = json.value("holders", std::uint64_t{0}),
                 .manifest_missed_seconds = RealAt(json, "missedSeconds"),
                 .cached_bytes = BytesAt(json, "/cached"),
                 .nodes_that_differ = json.value("nodesThatDiffer", std::vector<std::string>()),
                 .jobs_of_before = json.value("jobsOfBefore", std::size_t{0}),
                 .conflicts = json.value("conflicts", std::vector<std::string>())};
  if (json.contains("store")) {
    const Json& store = json["store"];
    view.store = {.answering = store.value("answering", std::uint64_t{0}),
                  .silent = store.value("silent", std::uint64_t{0}),
                  .members_silent = store.value("machines", std::uint64_t{0}),
                  .silent_seconds = RealAt(store, "silentSeconds"),
                  .cause = store.value("cause", ""),
                  .changed = store.value("changed", "")};
    if (store.contains("quietSeconds")) view.store.quiet_seconds = RealAt(store, "quietSeconds");
  }
  if (json.contains("hitRatio")) view.hit_ratio = RealAt(json, "hitRatio");
  if (json.contains("predicted")) view.predicted_hit_ratio = RealAt(json, "predicted");
  for (const Json& node : kube::Items(json, "/nodes"))
    view.nodes.push_back({.name = node.at("name"), .bytes = BytesAt(node, "/bytes")});
  return view;
}

Observed ObservedFrom(const Json& json) {
  Observed observed{.dataset = json.at("dataset"),
                    .plan_name_taken = json.value("planNameTaken", false),
                    .too_many = json.value("tooMany", false),
                    .now = json.value("now", 1000.0)};
  Json& metadata = observed.dataset["metadata"];
  if (!metadata.contains("uid")) metadata["uid"] = "dataset-uid";
  for (const Json& job : kube::Items(json, "/jobs"))
    observed.jobs.push_back(JobFrom(job));
  for (const Json& plan : kube::Items(json, "/plans"))
    observed.plans.push_back(PlanFrom(plan));
  if (json.contains("placed")) observed.placed = PlacedFrom(json["placed"]);
  if (json.contains("cache")) observed.cache = CacheFrom(json["cache"]);
  if (json.contains("saved")) {
    const Json& saved = json["saved"];
    observed.saved = {.requests = saved.value("requests", std::int64_t{0}),
                      .bytes = saved.value("bytes", std::int64_t{0}),
                      .wait_us = saved.value("waitUs", std::uint64_t{0})};
  }
  return observed;
}

const Json& StatusIn(const Decision& decision) {
  static const Json nothing;
  for (const Change& change : decision.applies) {
    if (change.subresource == "status") return change.object.at("status");
  }
  return nothing;
}

Json ConditionsIn(const Decision& decision) {
  Json conditions = Json::object();
  for (const Json& condition : kube::Items(StatusIn(decision), "/conditions")) {
    conditions[kube::TextAt(condition, "/type")] =
        kube::TextAt(condition, "/status") + " " + kube::TextAt(condition, "/reason");
  }
  return conditions;
}

Json NamesOf(const Decision& decision) {
  Json names = {{"applies", Json::array()}, {"deletes", Json::array()}, {"events", Json::array()}};
  for (const Change& change : decision.applies) {
    if (change.subresource.empty()) {
      names["applies"].push_back(std::string(change.resource.kind) + " " +
                                 kube::KeyOf(change.object).ToString());
    }
  }
  for (const Removal& removal : decision.deletes) {
    names["deletes"].push_back(std::string(removal.resource.kind) + " " + removal.key.ToString());
  }
  for (const kube::EventText& event : decision.events) {
    const bool warning = event.type == kube::EventType::kWarning;
    names["events"].push_back((warning ? "Warning " : "Normal ") + event.reason);
  }
  return names;
}

void Check(const Json& expected, const Decision& decision) {
  const Json names = NamesOf(decision);
  for (const char* list : {"applies", "deletes", "events"})
    EXPECT_EQ(names.at(list), expected.value(list, Json::array())) << list;
  if (expected.contains("conditions")) {
    EXPECT_EQ(ConditionsIn(decision), expected["conditions"]);
  }
  const Json& status = StatusIn(decision);
  const Json wanted_status = expected.value("status", Json::object());
  for (const auto& [field, value] : wanted_status.items())
    EXPECT_EQ(kube::Find(status, "/" + field), value) << field;
  const Json generations = expected.value("generations", Json::object());
  for (const auto& [type, generation] : generations.items()) {
    for (const Json& condition : kube::Items(status, "/conditions")) {
      if (kube::TextAt(condition, "/type") != type) continue;
      EXPECT_EQ(condition.value("observedGeneration", 0), generation) << condition;
    }
  }
  const Json messages = expected.value("messages", Json::object());
  for (const auto& [type, text] : messages.items()) {
    for (const Json& condition : kube::Items(status, "/conditions")) {
      if (kube::TextAt(condition, "/type") != type) continue;
      EXPECT_NE(kube::TextAt(condition, "/message").find(text.get<std::string>()),
                std::string::npos)
          << condition;
    }
  }
  const double requeue = decision.requeue_after ? ToSeconds(*decision.requeue_after) : 0;
  EXPECT_EQ(requeue, expected.value("requeueSeconds", 0.0));
}

TEST(ReconcileCases, AreDecidedAsTheySay) {
  const ReconcileSettings settings{.name = "optcache",
                                   .system_namespace = "optcache-system",
                                   .sidecar_image = "optcache/sidecar:1"};
  std::set<std::filesystem::path> files;
  for (const auto& file :
       std::filesystem::directory_iterator(InRepository("tests/cases/reconcile")))
    files.insert(file.path());
  ASSERT_FALSE(files.empty());
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    for (const YAML::Node& item : YAML::LoadFile(file.string())) {
      const Json test_case = ToJson(item);
      SCOPED_TRACE(test_case.at("case").get<std::string>());
      Check(test_case.at("expected"),
            DecideDataset(ObservedFrom(test_case.at("observed")), settings));
    }
  }
}

}  // namespace
}  // namespace optcache::reconcile
