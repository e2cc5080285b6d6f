// Which kind of sidecar the injector gives follows the machines of the cluster.

#include <gtest/gtest.h>

#include "base/base64.h"
#include "net/http_client.h"
#include "operator/api/resources.h"
#include "operator/manager/operator.h"
#include "operator/pki/objects.h"
#include "unit/kube/api_fixture.h"

namespace optcache::manager {
namespace {

class NativeSidecarsTest : public kube::ApiFixture {
 protected:
  NativeSidecarsTest() {
    kube::Json dataset = kube::MakeObject(api::kDatasets, {.ns = "vision", .name = "imagenet"});
    dataset["spec"] = kube::Json::parse(
        R"({"source": {"http": {"baseURL": "http://store/"}}, "cache": {"capacity": "30%"}})");
    server.store([&](kube::FakeApiStore& store) {
      store.Put(api::kDatasets, dataset);
      store.Put(kube::kSecrets, kube::MakeObject(kube::kSecrets, {.ns = "sys", .name = "oc-pki"}));
    });
    PutMachine("new", "v1.36.3");
    auto started = Operator::Start(loop, SystemClock(), {.server = server.url()},
                                   {.version = "0.1",
                                    .name = "oc",
                                    .system_namespace = "sys",
                                    .pod_name = "a",
                                    .pod_ip = "10.0.0.1",
                                    .sidecar_image = "optcache/sidecar:0.1",
                                    .webhook_address = "127.0.0.1:0",
                                    .control_address = "127.0.0.1:0",
                                    .metrics_address = "127.0.0.1:0",
                                    .retry_period = std::chrono::milliseconds(100)},
                                   [](const std::string&) {});
    EXPECT_TRUE(started) << started.error().message();
    op = *std::move(started);
    RunUntil([&] { return op->Ready().ok() && !Trust().empty(); });
  }

  void PutMachine(const std::string& name, const std::string& version) {
    kube::Json node = kube::MakeObject(kube::kNodes, {.ns = "", .name = name});
    node["status"]["nodeInfo"]["kubeletVersion"] = version;
    server.store([&](kube::FakeApiStore& store) { store.Put(kube::kNodes, node); });
  }
  void RemoveMachine(const std::string& name) {
    server.store(
        [&](kube::FakeApiStore& store) { store.Remove(kube::kNodes, {.ns = "", .name = name}); });
  }
  std::string Trust() {
    return kube::TextAt(
        server.Find(kube::kConfigMaps, {.ns = "sys", .name = authority::kBundleName}),
        "/data/ca.crt");
  }
  // What is done to a pod that asks for the Dataset, as text.
  std::string Patch() {
    auto tls = std::make_shared<net::TlsContext>(net::TlsRole::kClient);
    EXPECT_TRUE(tls->Replace({.trust = Trust()}).ok());
    const auto asker =
        net::MakeHttpClient(loop, {.tls = tls, .server_name = "oc-operator.sys.svc"});
    std::string body;
    asker->Send({.method = "POST",
                 .url = "https://127.0.0.1:" + std::to_string(op->webhook_port()) + "/mutate",
                 .body = R"({
                   "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                   "request": {
                     "uid": "u", "kind": {"group": "", "kind": "Pod"}, "operation": "CREATE",
                     "namespace": "vision",
                     "object": {"metadata": {"name": "train-0",
                                             "labels": {"optcache.io/inject": "true"},
                                             "annotations": {"optcache.io/dataset": "imagenet"}},
                                "spec": {"containers": [{"name": "c"}]}}}})"},
                std::chrono::minutes(2),
                [&](Result<net::HttpResponse> answer) { body = answer.value().body; });
    RunUntil([&] { return !body.empty(); });
    const kube::Json review = kube::Json::parse(body);
    return DecodeBase64(kube::TextAt(review, "/response/patch")).value();
  }
  // Waits until the sidecar is what it is to be.
  bool BecomesNative(bool native) {
    for (int tries = 0; tries < 6000; ++tries) {  // two minutes
      const std::string patch = Patch();
      EXPECT_NE(patch.find("optcache-sidecar"), std::string::npos) << patch;
      if ((patch.find(R"("restartPolicy":"Always")") != std::string::npos) == native) return true;
      RunFor(std::chrono::milliseconds(20));
    }
    return false;
  }

  std::unique_ptr<Operator> op;
};

TEST_F(NativeSidecarsTest, AreGivenAsLongAsEveryMachineRunsThem) {
  EXPECT_TRUE(BecomesNative(true));
  PutMachine("old", "v1.28.15-eks-1");
  EXPECT_TRUE(BecomesNative(false));
  PutMachine("old", "v1.29.0");
  EXPECT_TRUE(BecomesNative(true));
  PutMachine("another", "v1.27.3");
  EXPECT_TRUE(BecomesNative(false));
  RemoveMachine("another");
  EXPECT_TRUE(BecomesNative(true));
}

}  // namespace
}  // namespace optcache::manager
