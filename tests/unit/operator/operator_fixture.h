#pragma once

// Operators in this process, before a fake API server, TLS and all.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/time_text.h"
#include "coordination/codec.h"
#include "kube/conditions.h"
#include "net/http_client.h"
#include "operator/api/resources.h"
#include "operator/manager/operator.h"
#include "pki/pki.h"
#include "unit/kube/api_fixture.h"

namespace optcache::manager {

using kube::Json;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

inline constexpr const char* kSystem = "optcache-system";
inline constexpr const char* kDigest =
    "8b1f000000000001000000000000000000000000000000000000000000000000";
inline const kube::ObjectKey kLease{.ns = kSystem, .name = "optcache-operator"};
inline const kube::ObjectKey kDataset{.ns = "vision", .name = "imagenet"};

inline OperatorOptions Options(const std::string& pod) {
  return {.version = "0.1",
          .system_namespace = kSystem,
          .pod_name = pod,
          .pod_ip = "10.0.0.1",
          .sidecar_image = "optcache/sidecar:0.1",
          .webhook_address = "127.0.0.1:0",
          .control_address = "127.0.0.1:0",
          .metrics_address = "127.0.0.1:0",
          .retry_period = milliseconds(100),
          .shutdown_delay = milliseconds(50),
          .drain_timeout = seconds(2)};
}

class OperatorFixture : public kube::ApiFixture {
 protected:
  OperatorFixture() {
    server.store([](kube::FakeApiStore& store) {
      store.Put(kube::kSecrets,
                kube::MakeObject(kube::kSecrets, {.ns = kSystem, .name = "optcache-pki"}));
      Json injector = kube::MakeObject(kube::kMutatingWebhookConfigurations,
                                       {.ns = "", .name = "optcache-injector"});
      injector["webhooks"] = Json::array({{{"name", "label.optcache.io"},
                                           {"clientConfig", {{"service", {{"name", "s"}}}}},
                                           {"namespaceSelector",
                                            {{"matchExpressions",
                                              {{{"key", "kubernetes.io/metadata.name"},
                                                {"operator", "NotIn"},
                                                {"values", {"kube-system", kSystem}}}}}}}}});
      store.Put(kube::kMutatingWebhookConfigurations, injector);
      store.SetToken("node-token",
                     {{"username", "system:serviceaccount:optcache-system:optcache-node"},
                      {"extra", {{"authentication.kubernetes.io/pod-name", {"optcache-node-x"}}}}});
    });
  }

  std::unique_ptr<Operator> Start(const std::string& pod) { return Start(Options(pod)); }
  std::unique_ptr<Operator> Start(const OperatorOptions& options) {
    auto started = Operator::Start(loop, SystemClock(), {.server = server.url()}, options,
                                   [this](std::string why) { ends.push_back(std::move(why)); });
    EXPECT_TRUE(started) << started.error().message();
    return *std::move(started);
  }
  void PutDataset() {
    Json dataset = kube::MakeObject(api::kDatasets, kDataset);
    dataset["metadata"]["generation"] = 1;
    dataset["spec"] = Json::parse(
        R"({"source": {"http": {"baseURL": "http://store/images/"}}, "cache": {"capacity": "30%"},
            "access": [{"namespace": "speech"}]})");
    server.store([&](kube::FakeApiStore& store) { store.Put(api::kDatasets, dataset); });
  }
  Json Bundle(const std::string& ns) {
    return server.Find(kube::kConfigMaps, {.ns = ns, .name = authority::kBundleName});
  }
  Json FirstJob() {
    Json job;
    server.store([&](kube::FakeApiStore& store) {
      const auto jobs = store.List(kube::kJobs);
      if (!jobs.empty()) job = jobs.front();
    });
    return job;
  }
  // As Kubernetes would when the index Job has ended well: first its pod, then the Job.
  void FinishJob() {
    EndPodOfJob();
    CompleteJob();
  }
  void EndPodOfJob() {
    const Json job = FirstJob();
    Json pod = kube::MakeObject(kube::kPods, {.ns = "vision", .name = "index-pod"});
    pod["metadata"]["labels"] = job["spec"]["template"]["metadata"]["labels"];
    pod["metadata"]["labels"]["job-name"] = kube::KeyOf(job).name;
    pod["status"]["containerStatuses"] = Json::array(
        {{{"name", "index"},
          {"state",
           {{"terminated",
             {{"exitCode", 0},
              {"message", std::string(R"({"digest": ")") + kDigest +
                              R"(", "samples": 1000, "bytes": 100000, "largest": 500})"}}}}}}});
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  }
  void CompleteJob() {
    Json job = FirstJob();
    job["status"] = {{"completionTime", FormatTime(SystemClock().UnixSeconds())},
                     {"conditions", Json::array({{{"type", "Complete"}, {"status", "True"}}})}};
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kJobs, job); });
  }
  std::string StatusText(const std::string& pointer) {
    return kube::TextAt(server.Find(api::kDatasets, kDataset), pointer);
  }
  // One of a Job "train".
  void PutUninjectedPod(const std::string& ns, seconds age) {
    Json pod = kube::MakeObject(kube::kPods, {.ns = ns, .name = "train-0"});
    pod["metadata"]["labels"] = {{"optcache.io/inject", "true"}};
    pod["metadata"]["creationTimestamp"] =
        FormatTime(SystemClock().UnixSeconds() - static_cast<double>(age.count()));
    pod["metadata"]["ownerReferences"] = Json::parse(
        R"([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": true}])");
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  }
  // One of that Job, in which headspace was measured, and that has ended.
  void PutMeasuredPod(const std::string& ns, seconds ago, const std::string& state) {
    PutEndedPod(ns, ago, {{"headspace", {{"state", state}, {"message", "A sentence."}}}},
                {{"optcache.io/results", "not-for-use"}});
  }
  // A training pod whose sidecar has said that.
  void PutEndedPod(const std::string& ns, seconds ago, const Json& said,
                   Json annotations = Json::object()) {
    Json pod = kube::MakeObject(kube::kPods, {.ns = ns, .name = "train-0"});
    pod["metadata"]["labels"] = {{"optcache.io/inject", "true"}};
    annotations["optcache.io/injected"] = "0.1.0";
    pod["metadata"]["annotations"] = std::move(annotations);
    pod["metadata"]["ownerReferences"] = Json::parse(
        R"([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": true}])");
    const double ended = SystemClock().UnixSeconds() - static_cast<double>(ago.count());
    pod["status"] = {{"phase", "Succeeded"},
                     {"initContainerStatuses", Json::array({{{"name", "optcache-sidecar"},
                                                             {"state",
                                                              {{"terminated",
                                                                {{"exitCode", 0},
                                                                 {"finishedAt", FormatTime(ended)},
                                                                 {"message", said.dump()}}}}}}})}};
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
  }
  // Events about that Job, or about an object of another name.
  std::size_t TimesTold(const std::string& ns, const std::string& reason = "NotInjected",
                        const std::string& name = "train") {
    std::size_t times = 0;
    server.store([&](kube::FakeApiStore& store) {
      for (const Json& event : store.List(kube::kEvents)) {
        if (kube::TextAt(event, "/reason") == reason &&
            kube::TextAt(event, "/regarding/name") == name && kube::KeyOf(event).ns == ns)
          ++times;
      }
    });
    return times;
  }
  std::string MetricsOf(const Operator& op) {
    const auto reader = net::MakeHttpClient(loop, {});
    std::string page;
    reader->Send({.url = "http://127.0.0.1:" + std::to_string(op.pages_port()) + "/metrics"},
                 minutes(2), [&](Result<net::HttpResponse> answer) { page = answer.value().body; });
    RunUntil([&] { return !page.empty(); });
    return page;
  }
  // A response of the control server to a client with `material`.
  net::HttpResponse Ask(const Operator& op, net::HttpRequest request,
                        const net::TlsMaterial& material) {
    return AskPort(op.control_port(), std::move(request), material);
  }
  net::HttpResponse AskPort(std::uint16_t port, net::HttpRequest request,
                            const net::TlsMaterial& material) {
    auto tls = std::make_shared<net::TlsContext>(net::TlsRole::kClient);
    EXPECT_TRUE(tls->Replace(material).ok());
    const auto control = net::MakeHttpClient(
        loop, {.tls = tls, .server_name = "optcache-operator.optcache-system.svc"});
    request.url = "https://127.0.0.1:" + std::to_string(port) + request.url;
    std::optional<net::HttpResponse> response;
    control->Send(std::move(request), minutes(2), [&](Result<net::HttpResponse> answer) {
      EXPECT_TRUE(answer) << answer.error().message();
      response = answer ? *std::move(answer) : net::HttpResponse{.status = 0};
    });
    RunUntil([&] { return response.has_value(); });
    return *response;
  }
  // What the injector says of an unlabelled pod, as the API server asks it.
  net::HttpResponse Review(const Operator& op) {
    const Json review = {
        {"apiVersion", "admission.k8s.io/v1"},
        {"kind", "AdmissionReview"},
        {"request",
         {{"uid", "u"},
          {"operation", "CREATE"},
          {"namespace", "speech"},
          {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
          {"object", {{"metadata", {{"name", "p"}}}, {"spec", {{"containers", Json::array()}}}}}}}};
    return AskPort(op.webhook_port(),
                   {.method = "POST",
                    .url = "/mutate",
                    .headers = {{"Content-Type", "application/json"}},
                    .body = review.dump()},
                   {.trust = kube::TextAt(Bundle(kSystem), "/data/ca.crt")});
  }
  // As nodes do: again where nobody leads yet, or who leads has just begun and learns.
  net::HttpResponse AskAgain(const Operator& op, const net::HttpRequest& request,
                             const net::TlsMaterial& material) {
    net::HttpResponse answer = Ask(op, request, material);
    for (int tries = 0; tries < 1200 && answer.status == 503; ++tries) {  // two minutes
      RunFor(milliseconds(100));
      answer = Ask(op, request, material);
    }
    return answer;
  }
  // What a node gets for its token.
  net::TlsMaterial NodeMaterial(const Operator& op) {
    RunUntil([&] { return !Bundle(kSystem).is_null(); });
    const std::string trust = kube::TextAt(Bundle(kSystem), "/data/ca.crt");
    const std::string key = pki::MakeKey().value();
    const auto answer = AskAgain(op,
                                 {.method = "POST",
                                  .url = "/v1/certificates",
                                  .headers = {{"Authorization", "Bearer node-token"}},
                                  .body = pki::MakeRequest(key, {"anything"}).value()},
                                 {.trust = trust});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return {.chain = answer.body, .key = key, .trust = trust};
  }
  // A node on machine-x that holds the manifest reports, with its own certificate.
  net::TlsMaterial JoinNode(const Operator& op, const coordination::SavingsBatch& savings = {}) {
    const net::TlsMaterial node = NodeMaterial(op);
    const coordination::Report report{.node = "optcache-node-x",
                                      .incarnation = 1,
                                      .address = "10.0.0.9:4100",
                                      .capacity = 1_MiB,
                                      .manifest_url = "https://10.0.0.9:4102",
                                      .manifests = {kDigest},
                                      .savings = savings};
    Json pod = kube::MakeObject(kube::kPods, {.ns = kSystem, .name = "optcache-node-x"});
    pod["metadata"]["labels"] = {{"app.kubernetes.io/name", "optcache"},
                                 {"app.kubernetes.io/component", "node"}};
    pod["spec"]["nodeName"] = "machine-x";
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kPods, pod); });
    const auto answer = AskAgain(
        op, {.method = "POST", .url = "/v1/report", .body = coordination::ToJson(report)}, node);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return node;
  }
  bool PlacementSays(const std::string& text) {
    const auto placed = kube::ConditionOf(server.Find(api::kDatasets, kDataset), "Placed");
    return placed.message.find(text) != std::string::npos;
  }

  std::vector<std::string> ends;
};

}  // namespace optcache::manager
