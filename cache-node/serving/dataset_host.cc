// Brings the datasets here into line with the state in force.
//
//   OnState, OnUsed ─► Apply ─► here: NodeDataset takes its part of the state
//                         └──► not here, but to be: LoadManifest ─► OnManifest ─► OnListing ─► Make
//   NodeDataset needs a plan ─► FetchParts ─► StartPlan ─► a thread derives ─► OnDerived
//
// All waits end on the loop's thread, where the state may be another: each step looks up what it
// works for again. A manifest is awaited once for each dataset (`loading_`). On a laptop every node
// serves every dataset; in a cluster one serves what is placed on it and what pods of its machine
// read (`used_`).

#include "cache-node/serving/dataset_host.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "cache-node/serving/dataset_metrics.h"
#include "coordination/desired_state.h"

namespace optcache::node {
namespace {

constexpr std::size_t kMaxUsed = 4 * coordination::kMaxDatasets;  // names that used_ holds

// Several manifests of this Dataset are read.
bool SharesItsGrant(const coordination::DesiredState& state, const std::string& dataset) {
  return std::ranges::find(state.retiring, dataset, &coordination::DatasetState::name) !=
         state.retiring.end();
}

}  // namespace

std::shared_ptr<NodeDataset> DatasetHost::Find(wire::DatasetKey key) const {
  const auto found = datasets_.find(key);
  return found == datasets_.end() ? nullptr : found->second;
}

bool DatasetHost::IsComplete() const {
  return std::ranges::all_of(parts_.state.datasets, [this](const auto& dataset) {
    // Who waited for a manifest that is lost would keep out the one that brings it again.
    const bool lost = parts_.manifests != nullptr && dataset.manifest_holders.empty();
    return lost || !Serves(dataset) || datasets_.contains(dataset.key);
  });
}

// --- States -------------------------------------------------------------------------------------

void DatasetHost::BeginAs(wire::MemberId self) {
  datasets_.clear();
  self_ = self;
}

void DatasetHost::OnState() {
  std::set<wire::DatasetKey> present;
  for (const auto* dataset : coordination::AllDatasets(parts_.state)) {
    present.insert(dataset->key);
    Apply(*dataset);
  }
  std::erase_if(datasets_, [&](const auto& dataset) { return !present.contains(dataset.first); });
  if (parts_.disk != nullptr) parts_.disk->KeepOnly(present);
}

// A name that the state does not list may be made up, each time another.
void DatasetHost::OnUsed(const std::string& dataset) {
  if (used_.size() >= kMaxUsed) {
    std::erase_if(used_, [this](const auto& name) {
      return coordination::FindDataset(parts_.state, name) == nullptr;
    });
  }
  if (!used_.insert(dataset).second) return;
  if (self_ == 0) return;
  for (const auto* one : coordination::AllDatasets(parts_.state)) {
    if (one->name == dataset) Apply(*one);
  }
}

void DatasetHost::Apply(const coordination::DatasetState& state) {
  const std::shared_ptr<NodeDataset> dataset = Find(state.key);
  if (!dataset) {
    if (Serves(state)) LoadManifest(state);
    return;
  }
  if (dataset->Apply(state, HomesOf(state), clock_.Now())) FetchParts(state);
  if (SharesItsGrant(parts_.state, state.name) || IsOverbooked()) dataset->TrimToShare();
  if (parts_.visitors != nullptr) {
    for (const BorrowerId borrower : parts_.visitors->Uninvited(state))
      dataset->cache().retention_manager().OnBorrowerGone(borrower);
  }
  if (const auto number = dataset->TakeInventoryRequest(); number != 0)
    SendInventory(*dataset, number);
}

void DatasetHost::SendInventory(NodeDataset& dataset, coordination::RequestNumber number) {
  std::vector<coordination::RankPosition> positions = parts_.streams.Positions(dataset.state().key);
  for (coordination::RankPosition& position : positions)
    position.planned = dataset.book().Decides({.stream = position.stream,
                                               .pass = position.next.pass,
                                               .position = position.next.position});
  parts_.control.SendInventory({.node = options_.name,
                                .incarnation = options_.incarnation,
                                .dataset = dataset.name(),
                                .request = number,
                                .ids = dataset.cache().retention_manager().Inventory(
                                    ending_ ? ending_->on_disk : RetentionManager::OnDisk::kGoes),
                                .positions = std::move(positions)});
}

// What datasets are due, and what some hold beyond that, is more than the node offers. What they
// hold while it moves is not counted: there is a reserve for it.
bool DatasetHost::IsOverbooked() const {
  ByteCount all = 0;
  for (const auto* dataset : coordination::AllDatasets(parts_.state)) {
    const auto listed =
        std::ranges::find(dataset->capacities, self_, &coordination::MemberCapacity::member);
    const ByteCount share = listed == dataset->capacities.end() ? 0 : listed->bytes;
    const auto found = datasets_.find(dataset->key);
    if (found == datasets_.end()) {
      all += share;
      continue;
    }
    const DatasetCache& cache = found->second->cache();
    const ByteCount used = cache.tier().used();
    all += used > share + cache.config().reserve ? used : share;
  }
  return all > options_.memory + (parts_.disk != nullptr ? parts_.disk->offered() : 0);
}

bool DatasetHost::Serves(const coordination::DatasetState& state) const {
  return parts_.manifests == nullptr || used_.contains(state.name) ||
         std::ranges::find(state.capacities, self_, &coordination::MemberCapacity::member) !=
             state.capacities.end();
}

// Whom to ask for a sample: those on which the dataset is placed and that stay.
std::vector<wire::MemberId> DatasetHost::HomesOf(const coordination::DatasetState& state) const {
  std::vector<wire::MemberId> homes;
  std::vector<wire::MemberId> all;
  for (const auto& member : parts_.state.members) {
    if (!member.leaving) all.push_back(member.id);
  }
  for (const auto& capacity : state.capacities) {
    const bool stays = !capacity.departs && std::ranges::binary_search(all, capacity.member);
    if (stays) homes.push_back(capacity.member);
  }
  return homes.empty() ? all : homes;
}

// --- Manifests and plans ------------------------------------------------------------------------

void DatasetHost::LoadManifest(const coordination::DatasetState& state) {
  if (!loading_.insert(state.key).second) return;
  const auto done = guard_.Wrap(
      [this, state](Result<SharedBytes> bytes) { OnManifest(state, std::move(bytes)); });
  if (parts_.manifests != nullptr) {
    parts_.manifests->Get(state.manifest_digest, done);
  } else {
    parts_.control.FetchManifest(state.manifest_digest, done);
  }
}

// Taking a manifest apart takes seconds where it is large, in which others are served.
void DatasetHost::OnManifest(const coordination::DatasetState& state, Result<SharedBytes> bytes) {
  if (!bytes) return OnListing(state.key, Error(bytes.error()));
  const auto listing = std::make_shared<Result<Listing>>(Error(Code::kInternal, "not read"));
  const Status begun = parts_.worker.Run(
      [listing, digest = state.manifest_digest, bytes = *std::move(bytes)]() mutable {
        *listing = ReadListing(std::move(bytes), digest);
      },
      guard_.Wrap([this, key = state.key, listing] { OnListing(key, std::move(*listing)); }));
  if (!begun.ok()) OnListing(state.key, Error(begun));
}

void DatasetHost::OnListing(wire::DatasetKey key, Result<Listing> listing) {
  loading_.erase(key);
  const coordination::DatasetState* const wanted = coordination::FindDataset(parts_.state, key);
  if (wanted == nullptr) return;
  if (!listing) {
    Log(LogLevel::kError, "no manifest",
        {{"dataset", wanted->name}, {"why", listing.error().ToString()}});
    return;
  }
  Log(LogLevel::kInfo, "dataset served",
      {{"dataset", wanted->name},
       {"manifest", wanted->manifest_digest},
       {"samples", listing->sizes.count()}});
  Make(*wanted, *std::move(listing));
  Apply(*wanted);
}

void DatasetHost::Make(const coordination::DatasetState& state, Listing listing) {
  // Looked at on the loop's thread alone. What a deriver tells that ends is of no later Dataset.
  const auto derived_for = std::make_shared<std::weak_ptr<NodeDataset>>();
  const auto take = guard_.Wrap([this, derived_for](DerivedWindow window) {
    const std::shared_ptr<NodeDataset> dataset = derived_for->lock();
    if (dataset) dataset->OnDerived(std::move(window), clock_.Now());
  });
  const auto made = std::make_shared<NodeDataset>(
      state, self_, std::move(listing.sizes), std::move(listing.digests), parts_.effects,
      [&loop = loop_, take](DerivedWindow window) {
        loop.Post([take = take, window = std::move(window)]() mutable { take(std::move(window)); });
      },
      deriver_ends_);
  *derived_for = made;
  datasets_[state.key] = made;
  if (ending_) made->OnEnding(*ending_);
  if (parts_.disk != nullptr)
    made->cache().UseDisk(parts_.disk->TierOf(state.key), parts_.disk->state(), clock_.Now());
}

void DatasetHost::FetchParts(const coordination::DatasetState& state) {
  parts_.plan_parts.Get(state, guard_.Wrap([this, key = state.key, planned = state.planned,
                                            name = state.name](Result<PlanParts::Parts> parts) {
    const std::shared_ptr<NodeDataset> dataset = Find(key);
    if (!dataset || dataset->state().planned != planned) return;
    if (!parts) {
      Log(LogLevel::kError, "no base or lists for the plan",
          {{"dataset", name}, {"why", parts.error().ToString()}});
      return dataset->OnNoParts(parts.error());
    }
    dataset->StartPlan(std::move(parts->base), std::move(parts->lists));
  }));
}

// --- Time and other nodes -----------------------------------------------------------------------

void DatasetHost::Tick(MonotonicTime now) {
  for (const auto& [_, dataset] : datasets_)
    dataset->cache().Tick(now);
}

void DatasetHost::FollowStreams(MonotonicTime now) {
  for (const auto& [_, dataset] : datasets_) {
    dataset->FollowStreams(parts_.streams);
    dataset->GiveAwayIfDue(now);
  }
}

std::set<wire::MemberId> DatasetHost::Awaited() const {
  std::set<wire::MemberId> awaited;
  for (const auto& [_, dataset] : datasets_)
    dataset->cache().VisitAwaited([&awaited](wire::MemberId member) { awaited.insert(member); });
  return awaited;
}

void DatasetHost::OnPeerGone(wire::MemberId member) {
  for (const auto& [_, dataset] : datasets_)
    dataset->cache().OnPeerGone(member);
}

void DatasetHost::OnLinkLost(wire::MemberId member) {
  for (const auto& [_, dataset] : datasets_)
    dataset->cache().OnLinkLost(member);
}

ByteCount DatasetHost::in_memory() const {
  ByteCount bytes = 0;
  for (const auto& [_, dataset] : datasets_)
    bytes += dataset->cache().tier().in_memory();
  return bytes;
}

// --- The end ------------------------------------------------------------------------------------

void DatasetHost::OnEnding(const NodeDataset::Ending& ending) {
  ending_ = ending;
  for (const auto& [_, dataset] : datasets_)
    dataset->OnEnding(ending);
}

void DatasetHost::GiveAway(bool awaits_plans) {
  for (const auto& [_, dataset] : datasets_) {
    if (dataset->has_left() || (awaits_plans && dataset->AwaitsLastPlan())) continue;
    Log(LogLevel::kInfo, "giving samples to other nodes",
        {{"dataset", dataset->name()}, {"samples", dataset->GiveAway(clock_.Now())}});
  }
}

bool DatasetHost::HasLeft() const {
  return std::ranges::all_of(datasets_, [](const auto& dataset) {
    return dataset.second->has_left() && dataset.second->cache().push_queue().samples() == 0;
  });
}

void DatasetHost::LogDrain() const {
  for (const auto& [_, dataset] : datasets_) {
    const Counters& counters = dataset->cache().counters();
    Log(LogLevel::kInfo, "drained",
        {{"dataset", dataset->name()},
         {"moved", counters.relocated},
         {"bytes", counters.relocated_bytes},
         {"lost", counters.relocations_lost},
         {"not_sent", dataset->cache().push_queue().samples()}});
  }
}

// --- What others hear ---------------------------------------------------------------------------

void DatasetHost::Report(coordination::Report& report, const StoreTable& stores) const {
  for (const auto& [key, dataset] : datasets_) {
    auto& reports = coordination::IsRetiring(parts_.state, key) ? report.retiring : report.datasets;
    reports.push_back(dataset->Report());
    reports.back().store = stores.Report(key, clock_.Now());
  }
}

void DatasetHost::VisitCounters(const CounterVisitor& visitor) const {
  for (const auto& [key, dataset] : datasets_)
    VisitDataset(visitor, *dataset, coordination::IsRetiring(parts_.state, key));
}

}  // namespace optcache::node
