#pragma once

// A CachePlan on its way from revision 3 to 4, for the tests of the rollout subcommands.

#include <string>

#include <nlohmann/json.hpp>

namespace optcache::cli {

inline constexpr const char* kRevisions = R"({"items": [
  {"metadata": {"name": "imagenet-93be01d7ac", "creationTimestamp": "2026-01-05T10:00:00Z",
                "annotations": {"kubernetes.io/change-cause": "try the plan"}},
   "revision": 4,
   "data": {"spec": {"retention": "Optimal", "objective": "Bytes", "jobs": [
     {"name": "resnet", "sampler": {"kind": "TorchDistributed", "seed": 1, "worldSize": 8, "epochs": 90,
                                    "shuffle": true, "dropLast": false}}]}}},
  {"metadata": {"name": "imagenet-0d2f4e6b81", "creationTimestamp": "2026-01-02T08:00:00Z"},
   "revision": 1, "data": {"spec": {"retention": "LRU", "objective": "Bytes", "jobs": []}}},
  {"metadata": {"name": "imagenet-5f0c9a1b22", "creationTimestamp": "2026-01-03T09:30:00Z",
                "annotations": {"kubernetes.io/change-cause": "what came first stays"}},
   "revision": 3, "data": {"spec": {"retention": "Pin", "objective": "Bytes", "jobs": []}}}]})";

// In force is revision 3; the spec asks for 4, which is in Prepare. `changes` is a merge patch.
inline nlohmann::json PlanAsJson(const char* changes = "{}") {
  nlohmann::json plan = nlohmann::json::parse(R"({
  "apiVersion": "optcache.io/v1alpha1", "kind": "CachePlan",
  "metadata": {"namespace": "vision", "name": "imagenet", "generation": 7,
               "annotations": {"kubernetes.io/change-cause": "try the plan"}},
  "spec": {"dataset": "imagenet", "retention": "Optimal", "objective": "Bytes",
           "jobs": [{"name": "resnet", "sampler": {"seed": 1, "worldSize": 8, "epochs": 90}}],
           "rollout": {"maxUnavailable": "25%", "abort": {"after": 2}}},
  "status": {
    "observedGeneration": 7,
    "currentRevision": "imagenet-5f0c9a1b22", "updateRevision": "imagenet-93be01d7ac",
    "digest": "4be1c0ffee93a7d2",
    "nodes": {"desired": 3, "prepared": 1, "active": 0},
    "predicted": {"hitRatio": "0.300", "storeBytesPerEpoch": 98784247808, "movedBytesPerEpoch": 0},
    "observed": {"hitRatio": "0.298", "storeBytesPerEpoch": 99066486160, "movedBytesPerEpoch": 0,
                 "passes": 1, "since": "pass 6 of vision/resnet/imagenet/train"},
    "rollout": {"phase": "Prepare", "revision": "93be01d7ac"},
    "jobs": [{"name": "vision/resnet/imagenet/train", "pass": 7, "position": 550892, "length": 1281167, "ranks": 8,
              "rate": "1532.1", "order": "Known"}],
    "conditions": [
      {"type": "Available", "status": "True", "reason": "Followed", "message": "3 of 3 nodes follow it"},
      {"type": "Progressing", "status": "True", "reason": "Preparing",
       "message": "1 of 3 nodes have derived 93be01d7ac"}]}})");
  plan.merge_patch(nlohmann::json::parse(changes));
  return plan;
}

// With another phase, and the reason why it progresses or not.
inline nlohmann::json PlanIn(const std::string& phase, const std::string& reason,
                             const std::string& message, const char* changes = "{}") {
  nlohmann::json plan = PlanAsJson(changes);
  plan["status"]["rollout"]["phase"] = phase;
  plan["status"]["conditions"][1]["reason"] = reason;
  plan["status"]["conditions"][1]["message"] = message;
  return plan;
}

inline nlohmann::json CompletePlan() {
  return PlanIn("Complete", "Complete", "93be01d7ac is in force",
                R"({"status": {"currentRevision": "imagenet-93be01d7ac",
                               "nodes": {"prepared": 3, "active": 3},
                               "predicted": {"hitRatio": "0.562", "storeBytesPerEpoch": 61811146752,
                                             "movedBytesPerEpoch": 1073741824},
                               "observed": {"hitRatio": "0.560", "storeBytesPerEpoch": 62093383680,
                                            "movedBytesPerEpoch": 1075052544, "passes": 2,
                                            "since": "pass 8 of vision/resnet/imagenet/train"}}})");
}

// In the words of lib/coordinator/rollout.cc.
inline nlohmann::json StoppedPlan() {
  const std::string message =
      "the hit ratio is 0.471, predicted was 0.562, since pass 7 of vision/resnet/imagenet/train";
  nlohmann::json plan = PlanIn("Stopped", "BelowPredicted", message, R"({"status": {"nodes":
                               {"prepared": 3}, "rollout": {"failed": {"revision": "93be01d7ac",
                               "reason": "BelowPredicted", "time": "2026-01-05T12:00:00Z"}}}})");
  plan["status"]["rollout"]["failed"]["message"] = message;
  return plan;
}

}  // namespace optcache::cli
