#include "cli/program.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "support/source_dir.h"
#include "unit/cli/fake_kubectl.h"
#include "unit/cli/plan_examples.h"
#include "unit/cli/run_program.h"

namespace optcache::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Ended AskAbout(const nlohmann::json& plan, const std::string& words) {
  const FakeKubectl fake(
      {{.words = "get cacheplans.optcache.io/imagenet", .answers = {plan.dump()}},
       {.words = "get controllerrevisions.apps", .answers = {kRevisions}},
       {.words = "patch cacheplans.optcache.io/imagenet", .answers = {"patched"}},
       {.words = "get cacheplans.optcache.io",
        .answers = {"Error from server (NotFound): not found"}}});
  const KubectlInPath path(fake);
  return RunAsPlugin(words);
}

// What `kubectl rollout` does in the same place: exit status 1, and "error: " on standard error.
TEST(Program, EndsAsKubectlDoesWhenRolloutIsMisused) {
  struct Case {
    const char* words;
    const char* error;
    const char* help;
  };
  const Case cases[] = {
      {"rollout nonsense", "unknown command \"nonsense\"", "rollout"},
      {"rollout nonsense x", "unknown command \"nonsense x\"", "rollout"},
      {"rollout --nonsense", "unknown flag: --nonsense", "rollout"},
      {"rollout status", "NAME is required", "rollout status"},
      {"rollout status imagenet --nonsense", "unknown flag: --nonsense", "rollout status"},
      {"rollout history", "NAME is required", "rollout history"},
      {"rollout pause", "NAME is required", "rollout pause"},
      {"rollout resume", "NAME is required", "rollout resume"},
      {"rollout undo", "NAME is required", "rollout undo"},
      {"rollout restart", "NAME is required", "rollout restart"},
  };
  for (const Case& each : cases) {
    const std::string rest = std::string(each.error) + "\nSee '";
    const std::string help = std::string(each.help) + " --help' for usage.\n";
    const Ended plugin = RunAsPlugin(each.words);
    EXPECT_EQ(plugin.status, 1) << each.words;
    EXPECT_EQ(plugin.err, "error: " + rest + "kubectl optcache " + help) << each.words;
    EXPECT_EQ(plugin.out, "") << each.words;
    const Ended own = RunAs("optcache", each.words);
    EXPECT_EQ(own.status, 2) << each.words;
    EXPECT_EQ(own.err, "optcache: " + rest + "optcache " + help) << each.words;
  }
  for (const char* words : {"rollout status imagenet --timeout 5", "rollout undo x --to-revision y",
                            "rollout status imagenet -o xml", "rollout status deployment/x"}) {
    const Ended plugin = RunAsPlugin(words);
    EXPECT_EQ(plugin.status, 1) << words;
    EXPECT_THAT(plugin.err, StartsWith("error: ")) << words;
  }
}

TEST(Program, TheArchitecturePageListsItsCommands) {
  const std::string help = RunAs("optcache", "--help").out;
  std::string commands;
  std::size_t line = help.find("\n  ", help.find("\nSubcommands:"));
  for (; line != std::string::npos; line = help.find("\n  ", line + 1)) {
    const std::size_t name = line + 3;
    if (help[name] == ' ') continue;  // of the description above
    commands +=
        (commands.empty() ? "`" : ", `") + help.substr(name, help.find(' ', name) - name) + "`";
  }
  EXPECT_THAT(commands, StartsWith("`up`, "));
  const std::string page = ReadFile(InRepository("docs/ARCHITECTURE.md"), 1_MiB).value_or("");
  EXPECT_TRUE(page.contains("is the command line: " + commands + "; ")) << commands;
}

TEST(Program, PrintsHelpAsKubectlDoesForRolloutAlone) {
  struct Case {
    const char* words;
    int status;
  };
  const Case cases[] = {
      {"", 0}, {"rollout", 1}, {"rollout --help", 0}, {"rollout status --help", 0}};
  for (const Case& each : cases) {
    const Ended plugin = RunAsPlugin(each.words);
    EXPECT_EQ(plugin.status, each.status) << each.words;
    EXPECT_THAT(plugin.out, HasSubstr("Usage: kubectl optcache")) << each.words;
    EXPECT_EQ(plugin.err, "") << each.words;
  }
  const Ended own = RunAs("optcache", "rollout");
  EXPECT_EQ(own.status, 2);
  EXPECT_THAT(own.err, StartsWith("optcache: A subcommand is required"));
}

TEST(Program, EndsAsKubectlDoesByHowARolloutIs) {
  nlohmann::json paused = PlanAsJson();
  paused["spec"]["rollout"]["paused"] = true;
  nlohmann::json late = PlanIn("Activate", "ProgressDeadlineExceeded", "awaited: m2");
  struct Case {
    nlohmann::json plan;
    const char* words;
    int status;
    const char* out;
    const char* error;
  };
  const Case cases[] = {
      {CompletePlan(), "rollout status imagenet", 0, "successfully rolled out", ""},
      {PlanAsJson(), "rollout status imagenet --watch=false", 0, "1 of 3 nodes prepared", ""},
      {PlanIn("Activate", "Partitioned", ""), "rollout status imagenet", 0, "partitioned", ""},
      {StoppedPlan(), "rollout status imagenet", 1, "", "error: cacheplan \"imagenet\" rollout of"},
      {late, "rollout status imagenet", 1, "",
       "error: cacheplan \"imagenet\" exceeded its progress deadline"},
      {PlanAsJson(), "rollout status imagenet --timeout 1ms", 1, "", "error: timed out waiting"},
      {PlanAsJson(), "rollout status other", 1, "", "Error from server (NotFound): "},
      {PlanAsJson(), "rollout pause imagenet", 0, "imagenet paused", ""},
      {paused, "rollout pause imagenet", 1, "", "error: cacheplans.optcache.io \"imagenet\" is"},
      {paused, "rollout resume imagenet", 0, "imagenet resumed", ""},
      {PlanAsJson(), "rollout resume imagenet", 1, "", "error: cacheplans.optcache.io"},
      {PlanAsJson(), "rollout history imagenet", 0, "CHANGE-CAUSE", ""},
      {PlanAsJson(), "rollout history imagenet --revision 9", 1, "", "error: unable to find"},
      {PlanAsJson(), "rollout undo imagenet", 0, "imagenet rolled back", ""},
      {PlanAsJson(), "rollout undo imagenet --to-revision 9", 1, "", "error: unable to find"},
      {StoppedPlan(), "rollout restart imagenet", 0, "imagenet restarted", ""},
      {PlanAsJson(), "rollout restart imagenet", 1, "",
       "error: a rollout of cacheplan \"imagenet\" is"},
      {paused, "rollout restart imagenet", 1, "", "error: can't restart paused cacheplan"},
  };
  for (const Case& each : cases) {
    const Ended ended = AskAbout(each.plan, each.words);
    EXPECT_EQ(ended.status, each.status) << each.words << "\n" << ended.err;
    EXPECT_THAT(ended.out, HasSubstr(each.out)) << each.words;
    EXPECT_THAT(ended.err, StartsWith(each.error)) << each.words;
    EXPECT_EQ(ended.err.empty(), each.status == 0) << each.words << "\n" << ended.err;
  }
}

TEST(Program, ExplainsADatasetOfTheClusterAsAPlugin) {
  const FakeKubectl fake(std::vector<FakeKubectl::Rule>{
      {.words = "get datasets.optcache.io/imagenet --namespace=vision",
       .answers = {R"({"metadata": {"namespace": "vision", "name": "imagenet"}})"}}});
  const KubectlInPath path(fake);
  const Ended text = RunAsPlugin("explain dataset imagenet -n vision");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("Dataset vision/imagenet is not Ready.\nfault    operator: "));
  const Ended json = RunAsPlugin("explain dataset imagenet -n vision -o json");
  EXPECT_EQ(nlohmann::json::parse(json.out)["name"], "vision/imagenet");
  EXPECT_EQ(RunAs("optcache", "explain dataset imagenet -n vision --cluster").out, text.out);
}

TEST(Program, ExplainsAJobOfTheCluster) {
  const FakeKubectl fake(std::vector<FakeKubectl::Rule>{
      {.words = "get jobs.batch/train", .answers = {R"({"spec": {}})"}}});
  const KubectlInPath path(fake);
  const Ended ended = RunAsPlugin("explain job job/train -n vision");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, StartsWith("Job vision/train: 0 faults, "));
  EXPECT_THAT(ended.out, HasSubstr("kubectl auth can-i list pods -n vision"));
}

TEST(Program, ExplainHasExamples) {
  for (const char* thing : {"dataset", "job", "pod"}) {
    const Ended help = RunAsPlugin(std::string("explain ") + thing + " --help");
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, HasSubstr(std::string("kubectl optcache explain ") + thing)) << thing;
  }
}

}  // namespace
}  // namespace optcache::cli
