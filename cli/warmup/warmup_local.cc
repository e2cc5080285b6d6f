// Starts one `optcache-sidecar warm` for each node, and shows the sum of what they say.
//
// All get the same list of parts, so each can compute the whole choice and take its own. Parts are
// in proportion to what the nodes offer. Each prints a line of progress, of which the last whole
// one counts, and writes why it failed into a file of its own. At the first interruption, Follow
// stops all of them and waits for their end.

#include "cli/warmup/warmup_local.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/local/coordinator_status.h"
#include "cli/local/dataset_name.h"
#include "cli/terminal/live_screen.h"
#include "cli/terminal/print.h"
#include "cli/terminal/stop_wait.h"
#include "cli/up/local_cluster.h"
#include "cli/warmup/warm_process.h"
#include "cli/warmup/warm_progress.h"

namespace optcache::cli {
namespace {

constexpr Duration kWarmLookEvery = std::chrono::milliseconds(200);
constexpr Duration kRateOver = std::chrono::seconds(5);
constexpr ByteCount kEndBytesMax = 8192;

// "…/warmup-0.end": why that process has failed.
std::string EndFile(const std::string& end_files, std::size_t index) {
  return fmt::format("{}-{}.end", end_files, index);
}

std::string SentenceIn(const std::string& file) {
  const Result<std::string> text = ReadFile(file, kEndBytesMax);
  const auto json = nlohmann::json::parse(text ? *text : "", nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("message") || !json["message"].is_string()) return "";
  return json["message"].get<std::string>();
}

// Bytes a second over the last seconds.
class Rate {
 public:
  void Note(MonotonicTime now, ByteCount bytes) {
    seen_.emplace_back(now, bytes);
    while (seen_.size() > 2 && now - seen_.front().first > kRateOver)
      seen_.pop_front();
  }
  double PerSecond() const {
    if (seen_.size() < 2) return 0;
    const std::chrono::duration<double> time = seen_.back().first - seen_.front().first;
    const auto bytes = static_cast<double>(seen_.back().second - seen_.front().second);
    return time.count() > 0 ? bytes / time.count() : 0;
  }

 private:
  std::deque<std::pair<MonotonicTime, ByteCount>> seen_;
};

WarmProgress ProgressOf(const std::vector<WarmProcess>& processes) {
  std::vector<WarmProgress> parts;
  parts.reserve(processes.size());
  for (const WarmProcess& process : processes)
    parts.push_back(ParseWarmProgress(process.last_line()));
  return SumOf(parts);
}

// Until all have ended. kCancelled: a signal has come.
Status Follow(const std::string& name, std::vector<WarmProcess>& processes) {
  StopWait wait;
  LiveScreen screen(STDERR_FILENO);
  Rate rate;
  bool stopped = false;
  while (true) {
    std::size_t running = 0;
    for (WarmProcess& process : processes)
      running += process.Look() ? 1U : 0U;
    const WarmProgress progress = ProgressOf(processes);
    rate.Note(SystemClock().Now(), progress.read_bytes);
    screen.Draw(running == 0 ? "" : WarmLine(name, progress, rate.PerSecond()) + "\n");
    if (running == 0) break;
    if (wait.For(kWarmLookEvery) || stopped) continue;
    stopped = true;
    for (WarmProcess& process : processes)
      process.Stop();
  }
  if (!stopped) return OkStatus();
  return {Code::kCancelled,
          "stopped; what was read stays, and the next warm-up goes on from there"};
}

// "0=5000" for each node: what a dataset has is divided in proportion to what nodes offer.
std::vector<std::string> PartsOf(const std::vector<coordination::MemberStatus>& members,
                                 ByteCount capacity) {
  double offered = 0;
  for (const coordination::MemberStatus& member : members)
    offered += static_cast<double>(member.capacity);
  std::vector<std::string> parts;
  parts.reserve(members.size());
  for (const coordination::MemberStatus& member : members) {
    const double share = offered > 0 ? static_cast<double>(member.capacity) / offered
                                     : 1.0 / static_cast<double>(members.size());
    const auto bytes = static_cast<ByteCount>(static_cast<double>(capacity) * share);
    parts.push_back(fmt::format("{}={}", parts.size(), bytes));
  }
  return parts;
}

// Of each process: its part of the bandwidth, and no more than the dataset allows. 0: no limit.
ByteCount BytesPerSecond(ByteCount bandwidth, std::size_t processes, const api::Limits& limits) {
  const ByteCount each = bandwidth > 0 ? std::max<ByteCount>(1, bandwidth / processes) : 0;
  const ByteCount allowed = limits.bytes_per_second;
  return each > 0 && allowed > 0 ? std::min(each, allowed) : std::max(each, allowed);
}

}  // namespace

Result<std::vector<std::vector<std::string>>> WarmCommands(
    const std::string& program, const LocalSource& source, const std::string& ca_file,
    const coordination::ClusterStatus& status, ByteCount bandwidth, const std::string& end_files) {
  const auto dataset =
      std::ranges::find(status.datasets, source.name, &coordination::DatasetStatus::name);
  if (dataset == status.datasets.end() || status.members.empty()) {
    return Error(Code::kNotFound,
                 fmt::format("no node serves {}: does `optcache up` still start?", source.name));
  }
  if (dataset->capacity == 0) {
    return Error(Code::kResourceExhausted, fmt::format("nodes have no room for {}", source.name));
  }
  const std::vector<std::string> parts = PartsOf(status.members, dataset->capacity);
  std::vector<std::vector<std::string>> commands;
  for (const coordination::MemberStatus& member : status.members) {
    const std::size_t index = commands.size();
    std::vector<std::string>& command = commands.emplace_back();
    command = {program,
               "warm",
               "--name",
               fmt::format("warmup-{}", index),
               "--node",
               member.address,
               "--dataset",
               fmt::format("{}={}={}", source.name, source.manifest_file, source.store),
               "--at",
               std::to_string(index),
               "--termination-file",
               EndFile(end_files, index),
               "--progress"};
    const auto add = [&command](const char* flag, std::string value) {
      command.emplace_back(flag);
      command.push_back(std::move(value));
    };
    for (const std::string& part : parts)
      add("--part", part);
    if (!source.order.empty()) add("--order", source.order);
    if (!ca_file.empty()) add("--ca-file", ca_file);
    if (!source.keys_folder.empty())
      add("--keys", fmt::format("{}={}", source.name, source.keys_folder));
    if (const ByteCount rate = BytesPerSecond(bandwidth, status.members.size(), source.limits);
        rate > 0) {
      add("--bytes-per-second", fmt::format("{}={}", source.name, rate));
    }
    if (const auto rate = source.limits.requests_per_second; rate > 0)
      add("--requests-per-second", fmt::format("{}={}", source.name, rate));
    if (source.patience != dataset::kPatience) {
      const auto patience = std::chrono::duration_cast<std::chrono::seconds>(source.patience);
      add("--patience", fmt::format("{}={}s", source.name, patience.count()));
    }
  }
  return commands;
}

Status WarmHere(const LocalWarmup& warmup) {
  ASSIGN_OR_RETURN(const LocalSources sources, ReadLocalSources(warmup.state_dir));
  ASSIGN_OR_RETURN(const LocalSource* const found,
                   FindDataset(sources.datasets, warmup.dataset, &LocalSource::name));
  const LocalSource& source = *found;
  ASSIGN_OR_RETURN(const CoordinatorAnswer answer, AskCoordinator(warmup.coordinator));
  const std::string logs = warmup.state_dir + "/logs/warmup";
  ASSIGN_OR_RETURN(auto commands,
                   WarmCommands(ProgramDir() + "/optcache-sidecar", source, sources.ca_file,
                                answer.status, warmup.bandwidth, logs));
  const MonotonicTime begun = SystemClock().Now();
  std::vector<WarmProcess> processes;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    std::error_code ignored;
    std::filesystem::remove(EndFile(logs, i), ignored);
    RETURN_IF_ERROR(
        processes.emplace_back().Start(std::move(commands[i]), fmt::format("{}-{}.log", logs, i)));
  }
  RETURN_IF_ERROR(Follow(source.name, processes));
  for (std::size_t i = 0; i < processes.size(); ++i) {
    if (processes[i].succeeded()) continue;
    const std::string why = SentenceIn(EndFile(logs, i));
    return {Code::kUnavailable,
            why.empty() ? fmt::format("warming {} has failed: see {}-{}.log", source.name, logs, i)
                        : why};
  }
  const WarmProgress progress = ProgressOf(processes);
  if (progress.held + progress.read == 0 && progress.no_room > 0) {
    return {Code::kResourceExhausted,
            fmt::format("no node keeps anything of {}: they have no room, or the CachePlan's "
                        "retention is None",
                        source.name)};
  }
  const Duration took = SystemClock().Now() - begun;
  return PrintAs(warmup.output, WarmSummary(source.name, progress, took),
                 WarmAsJson(source.name, progress, took));
}

}  // namespace optcache::cli
