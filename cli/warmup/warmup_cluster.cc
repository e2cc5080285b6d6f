// Creates a Warmup by kubectl, and looks at its status until it has ended.
//
// The operator does the work; this only asks. The Dataset is looked for first, so that a wrong name
// is told at once. A cluster that does not answer a few times in a row ends the waiting, but not
// the warm-up.

#include "cli/warmup/warmup_cluster.h"

#include <charconv>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cli/cluster/cluster_questions.h"
#include "cli/terminal/live_screen.h"
#include "cli/terminal/print.h"
#include "cli/warmup/warm_progress.h"
#include "kube/conditions.h"
#include "kube/object.h"

namespace optcache::cli {
namespace {

constexpr const char* kWarmups = "warmups.optcache.io";
constexpr int kMaxLostWarmupLooks = 5;  // one after the other

std::vector<std::string> InSpace(const ClusterWarmup& warmup, std::vector<std::string> words) {
  if (!warmup.name_space.empty()) words.push_back("--namespace=" + warmup.name_space);
  return words;
}

Result<WarmupView> LookAt(const Kubectl& kubectl, const ClusterWarmup& warmup,
                          const std::string& name) {
  ASSIGN_OR_RETURN(
      const std::string object,
      kubectl.Run(InSpace(warmup, {"get", fmt::format("{}/{}", kWarmups, name), "--output=json"})));
  return ReadWarmupView(object);
}

// A cluster that does not answer is asked again some times.
bool IsPassingFault(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded;
}

Result<WarmupView> Await(const Kubectl& kubectl, const ClusterWarmup& warmup,
                         const std::string& name, int fd) {
  LiveScreen screen(fd);
  const MonotonicTime begun = SystemClock().Now();
  std::string said;
  int lost = 0;
  while (true) {
    const Result<WarmupView> view = LookAt(kubectl, warmup, name);
    if (!view && (!IsPassingFault(view.error().code()) || ++lost == kMaxLostWarmupLooks))
      return view;
    if (view) {
      lost = 0;
      const bool over = view->stage != WarmupView::Stage::kUnderWay;
      screen.Draw(over ? "" : WarmupLine(*view) + "\n");
      if (over) return view;
      if (!screen.is_terminal() && view->message != said) screen.Say(WarmupLine(*view));
      said = view->message;
    }
    const Duration spent = SystemClock().Now() - begun;
    if (warmup.timeout > Duration(0) && spent + warmup.interval > warmup.timeout) {
      return Error(Code::kDeadlineExceeded,
                   fmt::format("timed out waiting for warmup/{}, which goes on{}", name,
                               said.empty() ? "" : ": " + said));
    }
    std::this_thread::sleep_for(warmup.interval);
  }
}

std::string ViewAsJson(const WarmupView& view) {
  constexpr const char* kStages[] = {"UnderWay", "Complete", "Failed"};
  const kube::Json json = {{"name", view.name},
                           {"dataset", view.dataset},
                           {"state", kStages[static_cast<std::size_t>(view.stage)]},
                           {"progress", fmt::format("{}%", view.percent)},
                           {"bytes", view.bytes},
                           {"totalBytes", view.total_bytes},
                           {"reason", view.reason},
                           {"message", view.message}};
  return json.dump(2, ' ', false, kube::Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string WarmupObject(const ClusterWarmup& warmup) {
  kube::Json object = {{"apiVersion", "optcache.io/v1alpha1"},
                       {"kind", "Warmup"},
                       {"metadata", kube::Json::object()},
                       {"spec", {{"dataset", warmup.dataset}}}};
  if (warmup.name.empty()) {
    object["metadata"]["generateName"] = warmup.dataset + "-";
  } else {
    object["metadata"]["name"] = warmup.name;
  }
  if (!warmup.bandwidth.empty()) object["spec"]["bandwidth"] = warmup.bandwidth;
  if (warmup.on_indexed) object["spec"]["when"] = "OnIndexed";
  if (warmup.ttl && !warmup.on_indexed) {
    object["spec"]["ttlSecondsAfterFinished"] =
        std::chrono::duration_cast<std::chrono::seconds>(*warmup.ttl).count();
  }
  return object.dump(-1, ' ', false, kube::Json::error_handler_t::replace) + "\n";
}

Result<WarmupView> ReadWarmupView(std::string_view object) {
  const kube::Json json = kube::Json::parse(object, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || kube::TextAt(json, "/kind") != "Warmup")
    return Error(Code::kInvalidArgument, "kubectl has answered with no Warmup");
  const kube::Condition complete = kube::ConditionOf(json, "Complete");
  const kube::Condition failed = kube::ConditionOf(json, "Failed");
  const bool has_failed = failed.status == kube::ConditionStatus::kTrue;
  const kube::Condition& told = has_failed ? failed : complete;
  WarmupView view{.name = kube::KeyOf(json).name,
                  .dataset = kube::TextAt(json, "/spec/dataset"),
                  .stage = has_failed ? WarmupView::Stage::kFailed
                           : complete.status == kube::ConditionStatus::kTrue
                               ? WarmupView::Stage::kComplete
                               : WarmupView::Stage::kUnderWay,
                  .bytes = kube::CountAt(json, "/status/bytes"),
                  .total_bytes = kube::CountAt(json, "/status/totalBytes"),
                  .reason = told.reason,
                  .message = told.message};
  const std::string progress = kube::TextAt(json, "/status/progress");
  std::from_chars(progress.data(), progress.data() + progress.size(), view.percent);
  return view;
}

std::string WarmupLine(const WarmupView& view) {
  std::string line = fmt::format("{}  {}", view.dataset, WarmBar(view.percent / 100.0));
  if (view.total_bytes > 0)
    line += fmt::format("  {} of {}", FormatBytes(view.bytes), FormatBytes(view.total_bytes));
  if (view.reason != "Warming" && !view.message.empty()) line += "  " + view.message;
  return line;
}

Status WarmInCluster(const Kubectl& kubectl, const ClusterWarmup& warmup, int fd) {
  const auto dataset = kubectl.Run(
      InSpace(warmup, {"get", "datasets.optcache.io/" + warmup.dataset, "--output=name"}));
  if (!dataset) return ExplainMissing(dataset.error());
  const auto created = kubectl.Run(InSpace(warmup, {"create", "--filename=-", "--output=json"}),
                                   WarmupObject(warmup));
  if (!created) return ExplainMissing(created.error());
  ASSIGN_OR_RETURN(WarmupView view, ReadWarmupView(*created));
  const bool text = warmup.output == "text";
  if (text) RETURN_IF_ERROR(Print(fmt::format("warmup.optcache.io/{} created\n", view.name)));
  if (!warmup.wait) return text ? OkStatus() : PrintAs(warmup.output, "", ViewAsJson(view));
  ASSIGN_OR_RETURN(view, Await(kubectl, warmup, view.name, fd));
  RETURN_IF_ERROR(PrintAs(warmup.output, fmt::format("{}: {}\n", view.dataset, view.message),
                          ViewAsJson(view)));
  if (view.stage == WarmupView::Stage::kFailed)
    return {Code::kUnavailable, fmt::format("warmup/{} has failed", view.name)};
  return OkStatus();
}

}  // namespace optcache::cli
