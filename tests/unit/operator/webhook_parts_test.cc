// What the corpus of pods cannot show: the parts with arguments that no pod gives them.

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/webhook/affinity.h"
#include "operator/webhook/identity.h"
#include "operator/webhook/inject.h"
#include "operator/webhook/pod_patch.h"
#include "operator/webhook/sidecar_spec.h"
#include "support/fake_datasets.h"
#include "support/source_dir.h"

namespace optcache::webhook {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Json MachineOf(const std::string& version, const Json& labels) {
  return {{"metadata", {{"name", "m"}, {"labels", labels}}},
          {"status", {{"nodeInfo", {{"kubeletVersion", version}}}}}};
}

TEST(Settings, NativeSidecarsBeginWith1_29) {
  const auto is_old = [](const std::string& version) {
    return OldMachineOf(MachineOf(version, Json::object())).has_value();
  };
  EXPECT_TRUE(is_old("v1.20.0"));
  EXPECT_TRUE(is_old("v1.28.5-gke.100"));
  EXPECT_TRUE(is_old("v1.28+"));
  EXPECT_FALSE(is_old("v1.29.0"));
  EXPECT_FALSE(is_old("v1.36.3"));
  EXPECT_FALSE(is_old("v2.0.0"));
  EXPECT_FALSE(is_old("v1."));
  EXPECT_FALSE(is_old(""));
  EXPECT_EQ(OldMachineOf(Json::object()), std::nullopt);
}

TEST(Settings, KubeletsThatRunNoTrainingPodsAreNotAsked) {
  const std::string version = "v1.25.0-vk-azure-aci-1.6";
  EXPECT_TRUE(OldMachineOf(MachineOf(version, {{"type", "metal"}})));
  EXPECT_FALSE(OldMachineOf(MachineOf(version, {{"type", "virtual-kubelet"}})));
  EXPECT_FALSE(OldMachineOf(MachineOf(version, {{"kubernetes.io/os", "windows"}})));
}

TEST(Settings, AnOldMachineCountsForThePodsThatItMightRun) {
  InjectionSettings settings{
      .old_machines = {{.name = "m1", .labels = {{"pool", "old"}, {"gpu", "a100"}}}}};
  const auto may_be_native = [&settings](const Json& spec) { return MayBeNative(spec, settings); };
  EXPECT_FALSE(may_be_native(Json::object()));
  EXPECT_FALSE(may_be_native({{"nodeSelector", {{"gpu", "a100"}}}}));
  EXPECT_TRUE(may_be_native({{"nodeSelector", {{"gpu", "a100"}, {"pool", "new"}}}}));
  EXPECT_TRUE(may_be_native({{"nodeSelector", {{"zone", "a"}}}}));
  EXPECT_FALSE(may_be_native({{"nodeName", "m1"}}));
  EXPECT_TRUE(may_be_native({{"nodeName", "m2"}}));
  settings = {.ordinary_sidecars = true};
  EXPECT_FALSE(may_be_native(Json::object()));
}

TEST(Json, HasALimitOfDepth) {
  EXPECT_TRUE(ParseJson(std::string(kMaxDepth, '[') + std::string(kMaxDepth, ']')));
  EXPECT_FALSE(ParseJson(std::string(kMaxDepth + 1, '[') + std::string(kMaxDepth + 1, ']')));
  EXPECT_TRUE(ParseJson("\"" + std::string(1000, '[') + "\\\"[\""));
  EXPECT_FALSE(ParseJson("[1"));
}

TEST(Json, HasALimitOfSize) {
  EXPECT_TRUE(ParseJson(std::string(kMaxReviewBytes - 1, ' ') + "1"));
  EXPECT_FALSE(ParseJson(std::string(kMaxReviewBytes, ' ') + "1"));
}

TEST(PodPatch, MakesMissingParents) {
  PodPatch patch(Json{{"metadata", Json::object()}});
  patch.Set(Json::json_pointer("/metadata/annotations"), "a/b~c", "1");
  patch.Set(Json::json_pointer("/metadata/annotations"), "d", "2");
  EXPECT_EQ(patch.operations().dump(),
            R"([{"op":"add","path":"/metadata/annotations","value":{"a/b~c":"1"}},)"
            R"({"op":"add","path":"/metadata/annotations/d","value":"2"}])");
}

TEST(PodPatch, EscapesKeys) {
  PodPatch patch(Json{{"a", {{"x", 1}}}});
  patch.Set(Json::json_pointer("/a"), "b/c~d", 2);
  EXPECT_EQ(patch.operations()[0]["path"], "/a/b~1c~0d");
}

TEST(PodPatch, GivesWhatItsOperationsGive) {
  const Json before = {{"spec", {{"a", {1, 2}}, {"b", nullptr}}}};
  const Json::json_pointer spec("/spec");
  PodPatch patch(before);
  patch.Prepend(spec, "a", 0);
  patch.Append(spec, "a", 3);
  patch.Prepend(spec, "b", 1);
  patch.Append(spec, "c", 1);
  patch.Append(spec, "c", 2);
  EXPECT_EQ(patch.object(), before.patch(patch.operations()));
  EXPECT_EQ(patch.object()["spec"]["a"].dump(), "[0,1,2,3]");
  EXPECT_EQ(patch.object()["spec"]["c"].dump(), "[1,2]");
}

TEST(Identity, CountsRestartsFromOne) {
  const auto incarnation = [](const char* attempt) {
    const Json labels = {{"jobset.sigs.k8s.io/jobset-name", "a"},
                         {"jobset.sigs.k8s.io/restart-attempt", attempt}};
    return IdentityOf({{"metadata", {{"labels", labels}}}}, {}).incarnation;
  };
  EXPECT_EQ(incarnation("0"), 1U);
  EXPECT_EQ(incarnation("41"), 42U);
  EXPECT_EQ(incarnation("x"), 1U);
  EXPECT_EQ(incarnation("4294967295"), 1U);
}

TEST(Identity, TakesTheControllerAmongOwners) {
  const Json owners = {
      {{"kind", "Queue"}, {"name", "q"}, {"uid", "1"}},
      {{"kind", "Job"}, {"name", "j"}, {"uid", "22222222-3"}, {"controller", true}}};
  EXPECT_EQ(IdentityOf({{"metadata", {{"ownerReferences", owners}}}}, {}).owner, "j.22222222");
}

// The formula of docs/memory.md and its example.
TEST(Memory, IsArenaOverflowSamplesAndProgram) {
  const DatasetFacts facts{.indexed = true, .samples = 1'281'167, .largest_sample = 1_MiB};
  EXPECT_EQ(MemoryFor(1_GiB, {{.facts = &facts}}), 1_GiB + 256_MiB + 128'116'700 + 32_MiB);
}

TEST(Memory, OfOverflowIsTwoOfTheLargestSample) {
  EXPECT_EQ(OverflowFor(0), 256_MiB);
  EXPECT_EQ(OverflowFor(128_MiB), 256_MiB);
  EXPECT_EQ(OverflowFor(200_MiB), 400_MiB);
}

std::vector<std::string> Machines(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i)
    names.push_back("m" + std::to_string(i));
  return names;
}

TEST(Affinity, PrefersNoCrowd) {
  DatasetFacts facts{.hostnames = Machines(kMaxPreferredMachines)};
  EXPECT_FALSE(AddAffinity(Json::object(), {{.facts = &facts}})->value.is_null());
  facts.hostnames.emplace_back("one-more");
  EXPECT_TRUE(AddAffinity(Json::object(), {{.facts = &facts}})->value.is_null());
}

TEST(Affinity, RequiresNoMoreThanFitsAPod) {
  const DatasetFacts facts{.scheduling = api::SchedulingPreference::kRequired,
                           .hostnames = Machines(kMaxRequiredMachines + 5)};
  const Json affinity = AddAffinity(Json::object(), {{.facts = &facts}})->value;
  const Json& values = affinity.at(Json::json_pointer(
      "/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0"
      "/matchExpressions/0/values"));
  EXPECT_EQ(values.size(), kMaxRequiredMachines);
}

// Kubernetes lets a term without conditions match no machine.
TEST(Affinity, LeavesAloneWhatMatchesNothing) {
  const DatasetFacts facts{.scheduling = api::SchedulingPreference::kRequired, .hostnames = {"m1"}};
  const Json gpu = Json::parse(R"({"matchExpressions": [{"key": "gpu", "operator": "Exists"}]})");
  const Json nothing = Json::parse(R"({"matchExpressions": [], "matchFields": []})");
  const Json::json_pointer terms_at(
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  Json pod;
  pod["spec"][terms_at] = Json::array({gpu, Json::object(), nothing});
  const Json terms = AddAffinity(pod, {{.facts = &facts}})
                         ->value.at(Json::json_pointer(
                             terms_at.to_string().substr(std::string("/affinity").size())));
  EXPECT_EQ(terms[0]["matchExpressions"].size(), 2U);
  EXPECT_EQ(terms[1], Json::object());
  EXPECT_EQ(terms[2], nothing);

  pod["spec"][terms_at] = Json::array({Json::object()});
  EXPECT_TRUE(AddAffinity(pod, {{.facts = &facts}})->value.is_null());
}

TEST(Affinity, NamesAMachineOnce) {
  const DatasetFacts facts{.hostnames = {"b", "a", "b"}};
  const Json affinity = AddAffinity(Json::object(), {{.facts = &facts}})->value;
  EXPECT_EQ(affinity.at(Json::json_pointer(
                "/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/preference"
                "/matchExpressions/0/values")),
            (Json{"a", "b"}));
}

TEST(Inject, AddsSecretsForOurImageToThoseOfThePod) {
  Json pod = {{"metadata", {{"annotations", {{"optcache.io/dataset", "imagenet"}}}}},
              {"spec",
               {{"containers", Json::array({{{"name", "c"}}})},
                {"imagePullSecrets", Json::array({{{"name", "mine"}}})}}}};
  const FakeDatasets datasets = FakeDatasets::OfCorpus();
  const Injection injection = DecideInjection(
      pod, "vision", datasets, {.version = "1", .image_pull_secrets = {"mine", "ours"}});
  EXPECT_EQ(pod.patch(injection.patch)["spec"]["imagePullSecrets"].dump(),
            R"([{"name":"mine"},{"name":"ours"}])");
}

// The command line of docs/kubernetes.md, "The injected sidecar", word by word.
std::vector<std::string> DocumentedCommand() {
  std::ifstream file(InRepository("docs/kubernetes.md"));
  std::string line;
  while (std::getline(file, line) && line != "## The injected sidecar") {
  }
  std::string block;
  while (std::getline(file, line) && line != "```") {
  }
  while (std::getline(file, line) && line != "```")
    block += line.ends_with('\\') ? line.substr(0, line.size() - 1) : line;
  std::istringstream text(block);
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    for (const auto& [from, to] :
         {std::pair("NAMESPACE/POD", "$(POD_NAMESPACE)/$(POD_NAME)"), std::pair("NAME-", "oc-"),
          std::pair("SYSTEM", "cache-system")}) {
      const std::size_t at = word.find(from);
      if (at != std::string::npos) word.replace(at, std::string(from).size(), to);
    }
    words.push_back(word);
  }
  return words;
}

TEST(Container, RunsTheDocumentedCommand) {
  const DatasetFacts facts{
      .name_space = "vision", .name = "imagenet", .url = "http://store/images/", .indexed = true};
  SidecarPlan plan;
  plan.datasets = {{.facts = &facts}};
  const Json container = BuildContainer(plan, {.name = "oc", .system_namespace = "cache-system"});
  auto command = container["command"].get<std::vector<std::string>>();
  for (const Json& argument : container["args"])
    command.push_back(argument);
  EXPECT_EQ(command, DocumentedCommand());
}

TEST(Container, HasTheVariablesOfThoseThatReadSources) {
  const Json variable = {{"name", "https_proxy"}, {"value", "http://proxy:3128"}};
  const Json without = BuildContainer({}, {})["env"];
  Json with = without;
  with.push_back(variable);
  EXPECT_EQ(BuildContainer({}, {.source_variables = Json::array({variable})})["env"], with);
}

TEST(Container, AlwaysRequestsItsLimits) {
  SidecarPlan plan;
  for (const char* memory : {"", "3Gi"}) {
    plan.request.memory = memory;
    const Json resources = BuildContainer(plan, {})["resources"];
    for (const char* name : {"cpu", "memory"})
      EXPECT_EQ(resources["requests"].at(name), resources["limits"].at(name));
  }
}

TEST(Container, RequestsItsDiskAndLimitsItWhereTheOthersDo) {
  const DatasetFacts facts{.indexed = true, .samples = 10 * 1024 * 1024};
  SidecarPlan plan;
  plan.datasets = {{.facts = &facts}};
  Json resources = BuildContainer(plan, {})["resources"];
  EXPECT_EQ(resources["requests"]["ephemeral-storage"], "2064Mi");
  EXPECT_FALSE(resources["limits"].contains("ephemeral-storage"));
  plan.limits_storage = true;
  plan.request.storage = "3Gi";
  resources = BuildContainer(plan, {})["resources"];
  EXPECT_EQ(resources["requests"], resources["limits"]);
  EXPECT_EQ(resources["limits"]["ephemeral-storage"], "3Gi");
  EXPECT_EQ(BuildVolumes(plan)[0]["emptyDir"]["sizeLimit"], "8256Mi");
}

}  // namespace
}  // namespace optcache::webhook
