#include "sidecar/agent.h"

#include <utility>

#include "base/log.h"

namespace optcache::sidecar {
namespace {

constexpr auto kFarewell = std::chrono::milliseconds(100);  // for the last word to the node

}  // namespace

Result<std::unique_ptr<Agent>> Agent::Start(net::EventLoop& loop, const Clock& clock,
                                            AgentOptions options) {
  // The queue of reads stands before the stores: each takes as many at once as it may send.
  const storage::OpenOptions store{
      .concurrent_reads_max = static_cast<unsigned>(options.feeder.fetch.store_concurrency),
      .ca_file = options.ca_file};
  std::vector<std::unique_ptr<ServedDataset>> datasets;
  for (const DatasetSource& source : options.datasets) {
    ASSIGN_OR_RETURN(std::unique_ptr<ServedDataset> dataset, ServedDataset::Open(source, store));
    Log(LogLevel::kInfo, "serving a dataset",
        {{"dataset", dataset->name()},
         {"samples", dataset->samples()},
         {"bytes", FormatBytes(dataset->manifest().total_bytes())},
         {"manifest", dataset::ToHex(dataset->manifest().digest())},
         {"store", dataset->store().name()}});
    datasets.push_back(std::move(dataset));
  }
  ASSIGN_OR_RETURN(handoff::Arena arena, handoff::Arena::Create(options.arena_bytes));
  std::unique_ptr<Agent> agent(
      new Agent(loop, clock, std::move(options), std::move(arena), std::move(datasets)));
  RETURN_IF_ERROR(agent->clients_.Open(loop, clock, agent->options_.socket, agent->arena_.arena(),
                                       agent->feeder_));
  agent->node_.Open(agent->feeder_);
  return agent;
}

Agent::Agent(net::EventLoop& loop, const Clock& clock, AgentOptions options, handoff::Arena arena,
             std::vector<std::unique_ptr<ServedDataset>> datasets)
    : loop_(loop),
      options_(std::move(options)),
      datasets_(std::move(datasets)),
      arena_(std::move(arena)),
      alarms_(clock, [this] { ArmAlarms(); }),
      node_(loop, options_.node, options_.name),
      store_(loop, clock),
      orders_(loop, clock),
      clients_(Served()),
      feeder_(
          {.arena = arena_, .node = node_, .store = store_, .orders = orders_, .clients = clients_},
          alarms_, options_.feeder) {
  for (const auto& dataset : datasets_)
    store_.Add(*dataset);
}

Agent::~Agent() {
  clients_.Close();
  node_.Close();
  feeder_.GiveUp();  // else each read that is cancelled would make room for the next
  for (const auto& dataset : datasets_)
    dataset->store().Shutdown();
  // Buffers live in what those posted: they belong to the feeder and go before it.
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
}

std::vector<const ServedDataset*> Agent::Served() const {
  std::vector<const ServedDataset*> served;
  served.reserve(datasets_.size());
  for (const auto& dataset : datasets_)
    served.push_back(dataset.get());
  return served;
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
  clients_.Close();  // before their loaders end: they go on where the next one listens
  feeder_.EndAll();
  stop_timer_ = loop_.After(kFarewell, std::move(done));
}

void Agent::VisitCounters(const CounterVisitor& visitor) const {
  feeder_.VisitCounters(visitor);
  node_.VisitCounters(visitor);
  clients_.VisitCounters(visitor);
  for (const auto& dataset : datasets_)
    dataset->store().VisitCounters(visitor);
}

}  // namespace optcache::sidecar
