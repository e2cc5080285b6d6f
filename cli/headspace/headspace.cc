// Starts a cache, runs the training command with it, and asks the sidecar for the report until it
// is final.
//
//   Look, every 500 ms ─► GET /headspace ─► OnReport ─┬─ done ─► OnDone: print, draw, stop
//                                                     ├─ ended early, for 10 s ─► fail
//                                                     └─ else ─► Tell, when there is news
//   the command has ended, and 2 s later there is no report ─► fail
//
// `outcome_` is what the subcommand returns once the cluster has stopped. Measurement lives on the
// cluster's loop. When the cluster stops, for whatever reason, StopTraining ends the training
// command first. With --keep-running the report does not stop the cluster.

#include "cli/headspace/headspace.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "cli/headspace/headspace_print.h"
#include "cli/headspace/training_command.h"
#include "cli/terminal/print.h"
#include "cli/up/local_cluster.h"
#include "headspace/report_json.h"
#include "net/http_client.h"
#include "net/stop_signals.h"

namespace optcache::cli {
namespace {

using headspace::State;

constexpr const char* kHeadspaceMore =
    R"(Runs a cache on this machine, and the training command with it. First it measures steps as they are, then steps in
which every sample is delivered at once. Then it prints the report and stops everything. The loaders of the training
script must be attached (optcache.torch.attach). Without a command, start the job in another shell, in which you have
pasted the line that sets OPTCACHE_SOCKET. Do not use the model that such a run trains: it was given wrong samples.
docs/user/headspace.md explains the figures.

Examples:
  optcache headspace -f images.yaml -- python train.py --batch-size 256
  Measure smaller gains, and draw the curve:
    optcache headspace -f images.yaml --steps 1000 --free-steps 1000 --plot curve.svg -- torchrun train.py)";

constexpr Duration kLookEvery = std::chrono::milliseconds(500);
constexpr Duration kPageLimit = std::chrono::seconds(5);
constexpr Duration kTellEvery = std::chrono::seconds(10);
// For loaders that are replaced between two epochs, and for a report that is just being made.
constexpr Duration kEndedFor = std::chrono::seconds(10);
constexpr Duration kLastLook = std::chrono::seconds(2);
constexpr const char* kSucceeded = "exit status 0";
constexpr Duration kStopGrace = std::chrono::seconds(5);

struct HeadspaceRequest {
  LocalOptions local;
  headspace::Options options;
  std::string output = "table";
  std::string plot;
  bool keep_running = false;
  std::vector<std::string> command;
};

void SayToErrors(const std::string& line) {
  fmt::print(stderr, "{}\n", Visible(line));
}

// Runs the command, and looks at the sidecar's page until it says enough.
class Measurement {
 public:
  Measurement(const HeadspaceRequest& request, LocalCluster& cluster)
      : request_(request), cluster_(cluster), client_(net::MakeHttpClient(cluster.loop())) {
    cluster_.OnStop([this] { StopTraining(); });
  }

  Status Start();
  // After the cluster has run: why there is no report.
  const Status& outcome() const { return outcome_; }

 private:
  Status EndedBefore(const std::string& how) const;
  void LookLater();
  void Look();
  void OnPage(const Result<net::HttpResponse>& response);
  void OnReport(const headspace::Report& report, const std::string& json);
  void OnDone(const headspace::Report& report, const std::string& json);
  void Tell(const headspace::Report& report);
  void End(Status outcome);
  void StopTraining();

  const HeadspaceRequest& request_;
  LocalCluster& cluster_;
  std::unique_ptr<net::HttpClient> client_;
  std::string url_;
  TrainingCommand training_;
  net::Timer timer_;
  bool done_ = false;
  std::string last_message_ = "The sidecar has not said anything yet.";
  std::optional<State> told_;
  MonotonicTime told_at_{};
  std::optional<MonotonicTime> command_ended_at_;
  std::optional<MonotonicTime> ended_early_at_;
  Status outcome_ = {Code::kCancelled, "stopped before headspace was measured"};
};

Status Measurement::Start() {
  const Machine& machine = cluster_.machines().front();
  url_ = fmt::format("http://127.0.0.1:{}/headspace", machine.sidecar_http_port);
  if (!request_.command.empty()) {
    RETURN_IF_ERROR(training_.Start(request_.command, {{"OPTCACHE_SOCKET", machine.socket}}));
    cluster_.Say(fmt::format("training command: process {}", training_.pid()));
  }
  LookLater();
  return OkStatus();
}

// Its own failure first: what the sidecar has seen then explains nothing.
Status Measurement::EndedBefore(const std::string& how) const {
  if (how != kSucceeded) {
    return {Code::kUnavailable,
            fmt::format("the training command failed ({}), for reasons that it says above; until "
                        "then: {}",
                        how, last_message_)};
  }
  return {
      Code::kUnavailable,
      fmt::format("the training command ended before headspace was measured. {}", last_message_)};
}

void Measurement::LookLater() {
  timer_ = cluster_.loop().After(kLookEvery, [this] { Look(); });
}

void Measurement::Look() {
  const MonotonicTime now = SystemClock().Now();
  if (const auto ended = training_.Ended()) {
    if (done_) return End(OkStatus());
    if (!command_ended_at_) command_ended_at_ = now;
    if (now - *command_ended_at_ >= kLastLook) {
      return End(EndedBefore(*ended));
    }
  }
  if (done_) return LookLater();
  client_->Send({.url = url_}, kPageLimit,
                [this](const Result<net::HttpResponse>& response) { OnPage(response); });
}

// A sidecar that does not answer is just starting, or its supervisor says what is wrong with it.
void Measurement::OnPage(const Result<net::HttpResponse>& response) {
  LookLater();
  if (!response || response->status != 200) return;
  const Result<headspace::Report> report = headspace::ParseReport(response->body);
  if (!report) return End(report.error());
  OnReport(*report, response->body);
}

void Measurement::OnReport(const headspace::Report& report, const std::string& json) {
  Tell(report);
  if (report.state == State::kDone) return OnDone(report, json);
  if (report.state != State::kEndedEarly) {
    ended_early_at_.reset();
    return;
  }
  const MonotonicTime now = SystemClock().Now();
  if (!ended_early_at_) ended_early_at_ = now;
  if (now - *ended_early_at_ >= kEndedFor) End({Code::kUnavailable, report.message});
}

void Measurement::Tell(const headspace::Report& report) {
  const MonotonicTime now = SystemClock().Now();
  const bool news = report.message != last_message_;
  last_message_ = report.message;
  if (!news || (told_ == report.state && now - told_at_ < kTellEvery)) return;
  told_ = report.state;
  told_at_ = now;
  cluster_.Say(report.message);
}

void Measurement::OnDone(const headspace::Report& report, const std::string& json) {
  done_ = true;
  Status printed = Print(request_.output == "json" ? json : HeadspaceAsTable(report));
  if (printed.ok() && !request_.plot.empty())
    printed = WriteFileAtomically(request_.plot, DrawHeadspace(report));
  if (!printed.ok() || !request_.keep_running || !training_.running()) return End(printed);
  cluster_.Say(fmt::format("process {} goes on, as you said; samples come as always again",
                           training_.pid()));
  outcome_ = OkStatus();
}

void Measurement::End(Status outcome) {
  timer_.Cancel();
  outcome_ = std::move(outcome);
  cluster_.Stop();
}

void Measurement::StopTraining() {
  timer_.Cancel();
  client_.reset();  // the page that is asked for now would begin the next look
  if (training_.Ended() || !training_.running()) return;
  cluster_.Say(fmt::format(
      "stopping the training command, process {}; --keep-running lets it go on", training_.pid()));
  training_.Stop(kStopGrace);
}

Status MeasureHeadspace(const HeadspaceRequest& asked) {
  HeadspaceRequest request = asked;
  if (!request.command.empty()) RETURN_IF_ERROR(TrainingCommand::Find(request.command.front()));
  request.local.headspace = headspace::FormatOptions(request.options);
  ASSIGN_OR_RETURN(const StateDir state,
                   StateDir::Open(request.local.state_dir, "optcache headspace"));
  // Indexing may take long: Ctrl-C just ends it.
  ASSIGN_OR_RETURN(std::vector<ReadyDataset> datasets,
                   SetUpDatasets(request.local, state, SayToErrors));
  RaiseOpenFilesLimit();
  net::BlockStopSignals();
  LocalCluster cluster(state, std::move(datasets), STDERR_FILENO);
  cluster.ShowNothing();
  Measurement measurement(request, cluster);
  RETURN_IF_ERROR(cluster.Start(request.local));
  RETURN_IF_ERROR(measurement.Start());
  RETURN_IF_ERROR(cluster.Run());
  return measurement.outcome();
}

// Told before anything is measured: what a picture is written to at the end.
std::string MustTakePicture(const std::string& path) {
  const std::filesystem::path file(path);
  if (file.extension() != ".svg") return path + " does not end in .svg, which is what is drawn";
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return "there is no folder " + folder;
  if (std::filesystem::is_directory(file, error)) return path + " is a folder";
  return ::access(folder.c_str(), W_OK) == 0 ? "" : "nothing can be written into " + folder;
}

void AddTrainingCommand(CLI::App& command, std::vector<std::string>& words) {
  // Else options of the training command would be taken for ours.
  const auto must_follow_dashes = [&command](const std::string& /*word*/) -> std::string {
    const std::vector<std::string> rest = command.remaining();
    if (std::ranges::find(rest, "--") != rest.end()) return "";
    return "write -- before the training command: optcache headspace -f FILE -- COMMAND";
  };
  command.add_option("command", words, "Training command, after --")
      ->check(CLI::Validator(must_follow_dashes, ""));
}

void AddStepOptions(CLI::App& command, headspace::Options& options) {
  const CLI::Range steps(headspace::kStepsMin, headspace::kStepsMax);
  command.add_option("--steps", options.steps, "Number of steps to measure as they are")
      ->check(steps)
      ->capture_default_str();
  command
      .add_option("--free-steps", options.free_steps,
                  "Number of steps to measure while samples are delivered at once")
      ->check(steps)
      ->capture_default_str();
  command
      .add_option("--warmup-steps", options.warmup_steps,
                  "Number of steps to run before, which are not measured")
      ->check(CLI::Range(0U, headspace::kStepsMax))
      ->capture_default_str();
  command
      .add_option("--run-steps", options.run_steps,
                  "Number of steps of a rank in the whole run, from which the report computes "
                  "hours; default: what the loader announces")
      ->check(CLI::Range(std::uint64_t{1}, headspace::kRunStepsMax));
}

}  // namespace

void AddHeadspaceCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command =
      app.add_subcommand("headspace", "Measure how much faster training could be");
  command->footer(kHeadspaceMore);
  const auto request = std::make_shared<HeadspaceRequest>();
  request->local.port = 0;
  AddStepOptions(*command, request->options);
  AddLocalOptions(*command, request->local);
  command->add_option("--output", request->output, "Format of the report: table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->add_option("--plot", request->plot, "Draw the curve to this SVG file")
      ->type_name("FILE")
      ->check(CLI::Validator(MustTakePicture, ""));
  command->add_flag("--keep-running", request->keep_running,
                    "Let the training command continue after the report");
  AddTrainingCommand(*command, request->command);
  command->callback(
      [request, &chosen] { chosen = [request] { return MeasureHeadspace(*request); }; });
}

}  // namespace optcache::cli
