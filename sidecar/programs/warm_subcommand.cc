// Binds a Warmer to the node, the store and the time, and turns the loop until it has ended.
//
//   Open ─► manifest: from its file, or from a node within five minutes ─► Begin ─► Warmer ─► End
//
// All processes of a warm-up compute the same choice from the same manifest, order and parts
// (warm_choice.h), and each takes the part of its own node; so they need not talk. End counts once:
// the first of the result, a stop signal or the time limit. The loop then turns a moment longer,
// for what is still to be sent to the node.

#include "sidecar/programs/warm_subcommand.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/utf8.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/periodic_timer.h"
#include "net/stop_signals.h"
#include "net/tls_files.h"
#include "sampler/order_source.h"
#include "sampler/recipe_text.h"
#include "sidecar/fetch/node_link.h"
#include "sidecar/fetch/store_reader.h"
#include "sidecar/manifests/dataset_registry.h"
#include "sidecar/ports/retry_seed.h"
#include "sidecar/ports/stream_name.h"
#include "sidecar/programs/termination.h"

namespace optcache::sidecar {
namespace {

constexpr Duration kManifestWithin = std::chrono::minutes(5);
constexpr Duration kShowEvery = std::chrono::milliseconds(500);
constexpr Duration kLogEvery = std::chrono::seconds(10);
constexpr Duration kWarmFarewell = std::chrono::milliseconds(100);  // for the last word to the node
constexpr ByteCount kLeastMemory = 1_MiB;
// A byte takes up to six in JSON, and Kubernetes keeps 4096 of the whole.
constexpr std::size_t kFailureBytesMax = 500;

Result<DatasetSource> SourceOf(const WarmFlags& flags) {
  std::vector<DatasetSource> sources;
  for (const std::string& text : flags.datasets) {
    ASSIGN_OR_RETURN(DatasetSource source, ParseDatasetSource(text));
    sources.push_back(std::move(source));
  }
  if (sources.size() != 1) return Error(Code::kInvalidArgument, "warm takes one --dataset");
  for (const std::string& text : flags.keys)
    RETURN_IF_ERROR(AddKeys(text, sources));
  for (const std::string& text : flags.request_rates)
    RETURN_IF_ERROR(AddRequestRate(text, sources));
  for (const std::string& text : flags.byte_rates)
    RETURN_IF_ERROR(AddByteRate(text, sources));
  for (const std::string& text : flags.patiences)
    RETURN_IF_ERROR(AddPatience(text, sources));
  return sources.front();
}

Result<std::vector<SampleId>> OrderOf(const std::string& recipe_text) {
  if (recipe_text.empty()) return std::vector<SampleId>();
  ASSIGN_OR_RETURN(const sampler::Recipe recipe, sampler::ParseRecipe(recipe_text));
  ASSIGN_OR_RETURN(sampler::OrderSource source, sampler::OrderSource::Make(recipe));
  return source.PassOrder(0);
}

// What is on its way is leased, and a job that begins meanwhile waits for it: so it is what a
// second brings.
ByteCount MemoryFor(const storage::StoreRates& rates) {
  const ByteCount most = WarmOptions().memory;
  if (rates.bytes_per_second <= 0) return most;
  return std::clamp(static_cast<ByteCount>(std::min(rates.bytes_per_second, 1e15)), kLeastMemory,
                    most);
}

// Of all that warm the dataset together, and which of them is this process's.
struct Parts {
  std::vector<WarmPart> all;
  std::size_t own = 0;
};

Result<Parts> PartsOf(const WarmFlags& flags) {
  if (flags.parts.empty()) return Parts{.all = {{.node = flags.at, .room = ~ByteCount{0}}}};
  Parts parts;
  for (const std::string& text : flags.parts) {
    ASSIGN_OR_RETURN(WarmPart part, ParseWarmPart(text));
    parts.all.push_back(std::move(part));
  }
  const auto own = std::ranges::find(parts.all, flags.at, &WarmPart::node);
  if (own == parts.all.end()) {
    return Error(Code::kInvalidArgument,
                 fmt::format("--at {}: there is no --part of that name", flags.at));
  }
  parts.own = static_cast<std::size_t>(own - parts.all.begin());
  return parts;
}

// A warm-up, bound to sockets, stores and time. Used on one thread.
class WarmRun {
 public:
  WarmRun(const WarmFlags& flags, DatasetSource source, Parts parts, std::vector<SampleId> order)
      : flags_(flags),
        source_(std::move(source)),
        parts_(std::move(parts)),
        order_(std::move(order)),
        alarms_(SystemClock(), [this] { ArmAlarms(); }),
        store_(loop_, SystemClock()) {}
  ~WarmRun();
  WarmRun(const WarmRun&) = delete;
  WarmRun& operator=(const WarmRun&) = delete;

  Status Run();
  const WarmCounts& counts() const { return warmer_ ? warmer_->counts() : none_; }
  Status first_failure() const { return warmer_ ? warmer_->first_failure() : OkStatus(); }

 private:
  Status Open();
  void FetchManifest();
  void Begin(const ServedDataset& dataset);
  void End(Status why);
  void Show();
  void RunAlarms();
  void ArmAlarms();

  const WarmFlags& flags_;
  const DatasetSource source_;
  const Parts parts_;
  const std::vector<SampleId> order_;
  const WarmCounts none_;
  net::EventLoop loop_;
  std::shared_ptr<net::TlsContext> tls_;  // null: plaintext. Shared with connections
  std::unique_ptr<net::TlsFiles> tls_files_;
  std::unique_ptr<net::HttpClient> http_;  // outlives the registry
  std::unique_ptr<DatasetRegistry> registry_;
  net::Timer alarm_timer_;
  net::PeriodicTimer show_timer_;
  net::Timer manifest_timer_;
  net::Timer limit_timer_;
  net::Timer farewell_timer_;
  Alarms alarms_;
  StoreReader store_;
  std::optional<NodeLink> node_;
  std::optional<Warmer> warmer_;
  MonotonicTime log_at_{};
  std::optional<Status> ended_;
};

WarmRun::~WarmRun() {
  if (node_) node_->Close();
  if (registry_) registry_->Shutdown();
  // What those posted holds buffers, which go before their memory.
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
}

Status WarmRun::Open() {
  RETURN_IF_ERROR(
      CheckPlaces({.urls = flags_.manifests, .token_file = flags_.token_file}, flags_.node_ca));
  if (source_.manifest_file.empty() && flags_.manifests.empty()) {
    return {Code::kInvalidArgument,
            "where is its manifest? Give --manifests URL of a node, or NAME=MANIFEST_FILE=STORE"};
  }
  const storage::OpenOptions store{.concurrent_reads_max = flags_.store_concurrency,
                                   .ca_file = flags_.ca_file,
                                   .retry = {.seed = RetrySeedOf(flags_.name)}};
  ASSIGN_OR_RETURN(registry_, DatasetRegistry::Open({source_}, store, ""));
  if (!flags_.node_ca.empty()) {
    tls_ = std::make_shared<net::TlsContext>(net::TlsRole::kClient);
    tls_files_ =
        std::make_unique<net::TlsFiles>(loop_, net::TlsPaths{.trust = flags_.node_ca}, tls_);
  }
  node_.emplace(loop_, NodeLinkOptions{.address = flags_.node,
                                       .name = flags_.name,
                                       .tls = tls_,
                                       .token_file = flags_.token_file,
                                       .bulk = !flags_.encrypt_samples});
  return OkStatus();
}

Status WarmRun::Run() {
  RETURN_IF_ERROR(Open());
  const net::StopSignals signals(loop_, [this] { End({Code::kCancelled, "it was stopped"}); });
  limit_timer_ = loop_.After(std::chrono::seconds(flags_.timeout_s), [this] {
    End({Code::kDeadlineExceeded, fmt::format("it is not done after {} s", flags_.timeout_s)});
  });
  const DatasetRegistry::Place& place = registry_->places().front();
  if (place.dataset != nullptr) {
    Begin(*place.dataset);
  } else {
    FetchManifest();
  }
  loop_.Run();
  return *ended_;
}

void WarmRun::FetchManifest() {
  http_ = net::MakeHttpClient(
      loop_, {.tls = tls_, .server_name = tls_ ? std::string(net::kNodeServerName) : ""});
  registry_->FetchMissing(
      loop_, *http_,
      {.urls = flags_.manifests, .token_file = flags_.token_file, .seed = RetrySeedOf(flags_.name)},
      [this](const ServedDataset& dataset) {
        manifest_timer_.Cancel();
        loop_.Post([this, &dataset] { Begin(dataset); });
      });
  manifest_timer_ = loop_.After(kManifestWithin, [this] {
    const std::string& why = registry_->places().front().waits_for;
    End({Code::kUnavailable, "the list of samples has not come: " +
                                 (why.empty() ? std::string("no node has answered") : why)});
  });
}

void WarmRun::Begin(const ServedDataset& dataset) {
  if (ended_) return;
  auto choice = ChooseWarm(dataset, order_, parts_.all);
  if (!choice) return End(choice.error());
  store_.Add(dataset);
  warmer_.emplace(dataset, std::move((*choice)[parts_.own]), *node_, store_, alarms_,
                  WarmOptions{.memory = MemoryFor(source_.rates),
                              .store_concurrency = flags_.store_concurrency},
                  [this] { End(*warmer_->result()); });
  Log(LogLevel::kInfo, "warming",
      {{"dataset", dataset.name()},
       {"samples", warmer_->counts().samples},
       {"bytes", FormatBytes(warmer_->counts().bytes)},
       {"part", fmt::format("{} of {}", parts_.own + 1, parts_.all.size())}});
  log_at_ = SystemClock().Now() + kLogEvery;
  node_->Open(*warmer_);
  warmer_->Start();
  Show();
  show_timer_ = net::PeriodicTimer(loop_, kShowEvery, [this] { Show(); });
}

void WarmRun::End(Status why) {
  if (ended_) return;
  ended_ = std::move(why);
  if (warmer_) warmer_->Stop(*ended_);
  farewell_timer_ = loop_.After(kWarmFarewell, [this] { loop_.Stop(); });
}

void WarmRun::Show() {
  const WarmCounts& counts = warmer_->counts();
  if (flags_.progress) {
    std::puts(ProgressLine(counts).c_str());
    std::fflush(stdout);
  } else if (const MonotonicTime now = SystemClock().Now(); now >= log_at_) {
    log_at_ = now + kLogEvery;
    Log(LogLevel::kInfo, "warming", {{"done", counts.ended()}, {"all", counts.samples}});
  }
}

void WarmRun::RunAlarms() {
  alarms_.RunDue();
  ArmAlarms();
}

void WarmRun::ArmAlarms() {
  const auto next = alarms_.Next();
  if (!next) return;
  alarm_timer_ = loop_.After(Deadline(*next).Remaining(alarms_.Now()), [this] { RunAlarms(); });
}

// How far it came, and why the first sample that could not be read could not.
struct WarmEnd {
  WarmCounts counts;
  Status first_failure;
};

Status Warm(const WarmFlags& flags, WarmEnd& end) {
  ASSIGN_OR_RETURN(DatasetSource source, SourceOf(flags));
  ASSIGN_OR_RETURN(Parts parts, PartsOf(flags));
  ASSIGN_OR_RETURN(std::vector<SampleId> order, OrderOf(flags.order));
  WarmRun run(flags, std::move(source), std::move(parts), std::move(order));
  Status status = run.Run();
  end = {.counts = run.counts(), .first_failure = run.first_failure()};
  return status;
}

// Bytes that are no UTF-8, for example of an object's path, become U+FFFD.
std::string FailureField(const Status& failure) {
  if (failure.ok()) return "";
  const nlohmann::json text = CutText(std::string(failure.message()), kFailureBytesMax);
  return R"(,"firstFailure":)" +
         text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string ProgressLine(const WarmCounts& counts, const Status& first_failure) {
  return fmt::format(
      R"({{"samples":{},"totalSamples":{},"totalBytes":{},"held":{},"heldBytes":{},"read":{},)"
      R"("readBytes":{},"noRoom":{},"failed":{}{}}})",
      counts.ended(), counts.samples, counts.bytes, counts.held, counts.held_bytes, counts.read,
      counts.read_bytes, counts.no_room, counts.failed, FailureField(first_failure));
}

Status RunWarm(const WarmFlags& flags) {
  WarmEnd end;
  Status status = Warm(flags, end);
  const WarmCounts& counts = end.counts;
  const std::string line = ProgressLine(counts, end.first_failure);
  if (flags.progress) std::puts(line.c_str());
  if (!flags.termination_file.empty()) {
    WriteTermination(flags.termination_file,
                     status.ok() ? WarmedMessage(flags.at, line) : WarmFailedMessage(status));
  }
  if (!status.ok()) return status;
  if (counts.failed > 0) {
    Log(LogLevel::kWarning, "some samples could not be read",
        {{"failed", counts.failed}, {"first", end.first_failure.message()}});
  }
  if (counts.kept_nothing()) {
    Log(LogLevel::kWarning,
        "this machine's node keeps nothing of the dataset: it has no room, is not among the "
        "dataset's nodes, or the CachePlan's retention is None",
        {{"no_room", counts.no_room}});
  }
  Log(LogLevel::kInfo, "warm",
      {{"read", counts.read},
       {"bytes", FormatBytes(counts.read_bytes)},
       {"held", counts.held},
       {"no_room", counts.no_room}});
  return status;
}

}  // namespace optcache::sidecar
