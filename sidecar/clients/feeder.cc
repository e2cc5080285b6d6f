#include "sidecar/clients/feeder.h"

namespace optcache::sidecar {
namespace {

constexpr Duration kGoOnIn = std::chrono::milliseconds(1);  // with staging: others have their turn

}  // namespace

Feeder::Feeder(const FeederPorts& ports, Alarms& alarms, const FeederOptions& options)
    : alarms_(alarms),
      memory_(ports.arena, options.overflow_bytes, [this] { WorkLater(); }),
      fetcher_(ports.node, ports.store, alarms, options.fetch, [this] { WorkLater(); }),
      readers_(ports.node, ports.orders, alarms, options.readers, [this] { WorkLater(); }),
      batches_(readers_, memory_, fetcher_, ports.clients, alarms),
      prefetcher_(readers_, memory_, fetcher_,
                  [this](HeldSample& sample) { batches_.OnEnded(sample); }),
      stores_(ports.node, ports.store, alarms),
      rates_(ports.node, ports.store, alarms),
      savings_(ports.node, [this] { return batches_.SavedOfAll(); }, alarms) {
  if (!options.headspace) return;
  headspace_.emplace(*options.headspace, readers_, memory_.arena_capacity());
  batches_.Measure(*headspace_);
}

void Feeder::WorkLater() {
  if (std::exchange(work_due_, true)) return;
  alarms_.At(alarms_.Now(), [this] { Work(); });
}

// Who is asked for goes before what is staged.
void Feeder::Work() {
  work_due_ = false;
  batches_.Admit();
  if (!staging_waits_ && prefetcher_.Fill()) {
    staging_waits_ = true;
    alarms_.After(kGoOnIn, [this] {
      staging_waits_ = false;
      WorkLater();
    });
  }
  readers_.Predict();
  fetcher_.Flush();
}

void Feeder::OnClientGone(ClientId client) {
  batches_.OnClientGone(client);
  readers_.OnClientGone(client);
}

void Feeder::OnNodeUp() {
  readers_.OnNodeUp();
  stores_.OnNodeUp();
  rates_.OnNodeUp();
  savings_.OnNodeUp();
}

void Feeder::OnNodeLost() {
  fetcher_.OnNodeLost();
}

void Feeder::OnAnswer(std::uint32_t request, const wire::SampleReply& reply) {
  fetcher_.OnAnswer(request, reply);
}

BufferRef Feeder::OnPayloadStart(std::uint32_t request, const wire::SampleReply& reply,
                                 ByteCount length) {
  return fetcher_.OnPayloadStart(request, reply, length);
}

void Feeder::OnPayload(std::uint32_t request, const wire::SampleReply& reply,
                       const Status& status) {
  fetcher_.OnPayload(request, reply, status);
}

void Feeder::EndAll() {
  readers_.EndAll();
  savings_.Tell();
  fetcher_.Flush();
}

void Feeder::GiveUp() {
  batches_.GiveUp();
  EndAll();
}

void Feeder::VisitCounters(const CounterVisitor& visitor) const {
  memory_.VisitCounters(visitor);
  fetcher_.VisitCounters(visitor);
  readers_.VisitCounters(visitor);
  batches_.VisitCounters(visitor);
  if (headspace_) headspace_->VisitCounters(visitor);
}

}  // namespace optcache::sidecar
