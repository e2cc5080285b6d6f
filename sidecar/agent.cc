// Binds the core (feeder.h) to sockets, stores and threads, and starts and ends all of it in order.
//
//   training processes ─► ClientService ───────────┐           ┌─► NodeLink ─► node
//   clients of S3 ─► S3Endpoint ─► ObjectReads ─┼─► Feeder ─┼─► StoreReader ─► stores, on threads
//                                               │           └─► OrderReplayer, on a thread
//                   answers: ClientRouter ◄─────┘
//
// Everything but the reads of stores and the replay of orders happens on the loop's thread. At the
// end the sources of questions close first, the feeder gives up what waits, the stores are
// cancelled, and the loop turns once more. What threads have posted holds buffers, and buffers must
// die before the memory that they lie in.

#include "sidecar/agent.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "sidecar/clients/sources_file.h"
#include "sidecar/ports/retry_seed.h"
#include "sidecar/ports/stream_name.h"

namespace optcache::sidecar {
namespace {

constexpr auto kFarewell = std::chrono::milliseconds(100);  // for the last word to the node

std::shared_ptr<net::TlsContext> ContextFor(const AgentOptions& options) {
  if (options.node_ca.empty()) return nullptr;
  return std::make_shared<net::TlsContext>(net::TlsRole::kClient);
}

Status CheckManifestPlaces(const AgentOptions& options) {
  RETURN_IF_ERROR(
      CheckPlaces({.urls = options.manifests, .token_file = options.token_file}, options.node_ca));
  for (const DatasetSource& source : options.datasets) {
    if (!source.manifest_file.empty()) continue;
    if (options.manifests.empty()) {
      return {Code::kInvalidArgument, "dataset '" + source.name +
                                          "': where is its manifest? Give --manifests URL of a "
                                          "node, or NAME=MANIFEST_FILE=STORE_URI"};
    }
    if (std::ranges::count(source.name, '/') != 1) {
      return {Code::kInvalidArgument,
              "dataset '" + source.name + "' is not NAMESPACE/NAME, as nodes know it"};
    }
  }
  return OkStatus();
}

}  // namespace

storage::OpenOptions StoreOptionsOf(const AgentOptions& options) {
  // The queue of reads stands before the stores: each takes as many at once as it may send.
  return {.concurrent_reads_max = static_cast<unsigned>(options.feeder.fetch.store_concurrency),
          .ca_file = options.ca_file,
          .retry = {.seed = RetrySeedOf(options.name)}};
}

Result<std::unique_ptr<Agent>> Agent::Start(net::EventLoop& loop, const Clock& clock,
                                            AgentOptions options) {
  RETURN_IF_ERROR(CheckManifestPlaces(options));
  ASSIGN_OR_RETURN(
      std::unique_ptr<DatasetRegistry> datasets,
      DatasetRegistry::Open(options.datasets, StoreOptionsOf(options), options.manifest_dir));
  ASSIGN_OR_RETURN(handoff::Arena arena, handoff::Arena::Create(options.arena_bytes));
  std::unique_ptr<Agent> agent(
      new Agent(loop, clock, std::move(options), std::move(arena), std::move(datasets)));
  RETURN_IF_ERROR(agent->KeepComputed());
  RETURN_IF_ERROR(agent->clients_.Open(loop, clock, agent->options_.socket, agent->options_.users,
                                       agent->arena_.arena(), agent->feeder_));
  agent->ListSources();
  agent->node_.Open(agent->feeder_);
  agent->feeder_.TellNode();
  RETURN_IF_ERROR(agent->ServeByS3());
  agent->FetchManifests();
  return agent;
}

Agent::Agent(net::EventLoop& loop, const Clock& clock, AgentOptions options, handoff::Arena arena,
             std::unique_ptr<DatasetRegistry> datasets)
    : loop_(loop),
      options_(std::move(options)),
      tls_(ContextFor(options_)),
      datasets_(std::move(datasets)),
      arena_(std::move(arena)),
      alarms_(clock, [this] { ArmAlarms(); }),
      node_(loop, {.address = options_.node,
                   .name = options_.name,
                   .tls = tls_,
                   .token_file = options_.token_file,
                   .bulk = !options_.encrypt_samples}),
      store_(loop, clock),
      orders_(loop, clock),
      clients_(*datasets_),
      objects_(alarms_),
      router_(clients_, objects_),
      feeder_(
          {.arena = arena_, .node = node_, .store = store_, .orders = orders_, .clients = router_},
          alarms_, options_.feeder),
      key_order_(feeder_.readers(), kObjectClients) {
  if (tls_) {
    tls_files_ =
        std::make_unique<net::TlsFiles>(loop_, net::TlsPaths{.trust = options_.node_ca}, tls_);
  }
  for (const DatasetRegistry::Place& place : datasets_->places()) {
    if (place.dataset != nullptr) Take(*place.dataset);
  }
}

Agent::~Agent() {
  s3_.reset();
  objects_.Close();
  clients_.Close();
  node_.Close();
  feeder_.GiveUp();  // else each read that is cancelled would make room for the next
  datasets_->Shutdown();
  // Buffers live in what those posted: they belong to the feeder and go before it.
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
}

Status Agent::KeepComputed() {
  if (options_.computed_bytes == 0) return OkStatus();
  ASSIGN_OR_RETURN(handoff::Arena memory, handoff::Arena::Create(options_.computed_bytes));
  computed_memory_.emplace(std::move(memory));
  computed_.emplace(*computed_memory_, orders_, alarms_, options_.feeder.readers, clients_);
  clients_.KeepComputed(*computed_, computed_memory_->arena());
  return OkStatus();
}

// Once this listens, so that the file of another sidecar at this socket stays; and before a client
// gets its first answer.
void Agent::ListSources() const {
  std::vector<ListedSource> listed;
  for (std::size_t i = 0; i < options_.datasets.size(); ++i) {
    const ServedDataset* const dataset = datasets_->places()[i].dataset.get();
    listed.push_back({.source = options_.datasets[i],
                      .manifest_digest =
                          dataset == nullptr ? "" : dataset::ToHex(dataset->manifest().digest())});
  }
  const Status written = WriteSources(options_.socket, listed, options_.ca_file);
  if (!written.ok()) {
    Log(LogLevel::kWarning,
        "sources could not be listed: training waits while this sidecar does not answer",
        {{"why", written.message()}});
  }
}

void Agent::FetchManifests() {
  if (options_.manifests.empty()) return;
  http_ = net::MakeHttpClient(
      loop_, {.tls = tls_, .server_name = tls_ ? std::string(net::kNodeServerName) : ""});
  datasets_->FetchMissing(loop_, *http_,
                          {.urls = options_.manifests,
                           .token_file = options_.token_file,
                           .seed = RetrySeedOf(options_.name)},
                          [this](const ServedDataset& dataset) {
                            Take(dataset);
                            Serve(dataset);
                          });
}

void Agent::Take(const ServedDataset& dataset) {
  store_.Add(dataset);
  feeder_.OnDataset();
  feeder_.fetcher().CountFor(dataset.name());
  WarnOfLargeSamples(dataset);
}

// Those that are refused whenever the arena has no room for them, or always.
void Agent::WarnOfLargeSamples(const ServedDataset& dataset) const {
  ByteCount largest = 0;
  for (SampleId id = 0; id < dataset.samples(); ++id)
    largest = std::max(largest, dataset.SizeOf(id));
  const SampleMemory& memory = feeder_.memory();
  const ByteCount by_copy = std::min(memory.AloneAtAnyTime(), kCopyMax);
  if (largest <= by_copy) return;
  const bool ever =
      largest <= std::max(memory.arena_capacity(), std::min(memory.AloneMax(), kCopyMax));
  Log(LogLevel::kWarning,
      ever ? "samples are so large that they are refused while the arena is full"
           : "samples are too large for this sidecar, and are refused",
      {{"dataset", dataset.name()},
       {"largest", FormatBytes(largest)},
       {"arena", FormatBytes(memory.arena_capacity())},
       {"overflow", FormatBytes(memory.overflow_capacity())},
       {"do", largest > kCopyMax ? "start with --arena of at least twice the largest"
                                 : "start with --overflow of at least twice the largest"}});
}

Status Agent::ServeByS3() {
  objects_.Open(feeder_, key_order_);
  if (options_.s3.address.empty()) return OkStatus();
  ASSIGN_OR_RETURN(s3_,
                   S3Endpoint::Start(loop_, options_.datasets, objects_, key_order_, options_.s3));
  for (const DatasetRegistry::Place& place : datasets_->places()) {
    if (place.dataset != nullptr) Serve(*place.dataset);
  }
  return OkStatus();
}

void Agent::Serve(const ServedDataset& dataset) {
  if (s3_ != nullptr) s3_->Serve(dataset);
}

void Agent::RunAlarms() {
  alarms_.RunDue();
  ArmAlarms();
}

void Agent::ArmAlarms() {
  const auto next = alarms_.Next();
  if (!next) return;
  alarm_timer_ = loop_.After(Deadline(*next).Remaining(alarms_.Now()), [this] { RunAlarms(); });
}

void Agent::Stop(std::function<void()> done) {
  RemoveSources(options_.socket);  // while no other sidecar can have taken the socket
  clients_.Close();  // before their loaders end: they go on where the next one listens
  feeder_.EndAll();
  stop_timer_ = loop_.After(kFarewell, std::move(done));
}

void Agent::VisitCounters(const CounterVisitor& visitor) const {
  feeder_.VisitCounters(visitor);
  store_.VisitCounters(visitor);
  if (computed_) {
    computed_->VisitCounters(visitor);
  } else {
    ComputedCache::VisitNone(visitor);
  }
  node_.VisitCounters(visitor);
  clients_.VisitCounters(visitor);
  if (s3_ != nullptr) s3_->VisitCounters(visitor);
  datasets_->VisitCounters(visitor);
}

}  // namespace optcache::sidecar
