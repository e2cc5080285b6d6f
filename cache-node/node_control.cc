// The node's end of the control API: what the coordinator wants, and what it is told.

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "cache-node/node.h"
#include "coordination/codec.h"
#include "coordination/desired_state.h"
#include "net/address.h"

namespace optcache::node {
namespace {

constexpr std::size_t kMaxUsed = 4 * coordination::kMaxDatasets;  // names that used_ holds
constexpr ByteCount kPlainBodyMax = 4_GiB;                        // a manifest

// Several manifests of this Dataset are read.
bool SharesItsGrant(const coordination::DesiredState& state, const std::string& dataset) {
  return std::ranges::find(state.retiring, dataset, &coordination::DatasetState::name) !=
         state.retiring.end();
}

}  // namespace

// --- Joining ------------------------------------------------------------------------------------

Status Node::JoinCluster() {
  ASSIGN_OR_RETURN(const net::Address advertised, net::ParseAddress(options_.advertise));
  ASSIGN_OR_RETURN(
      cluster_, ClusterSide::Start(
                    loop_, clock_, options_.cluster,
                    {.name = options_.name,
                     .host = advertised.host,
                     .coordinator = options_.coordinator,
                     .seed = options_.incarnation},
                    {.state = [this]() -> const coordination::DesiredState& { return state_; },
                     .held =
                         [this](wire::DatasetKey key) {
                           const auto dataset = Find(key);
                           return dataset ? dataset->name() : std::string();
                         },
                     .on_ready = [this] { loop_.Post(guard_.Wrap([this] { control_->Start(); })); },
                     .on_change =
                         [this] {
                           if (control_) control_->ReportSoon();
                         },
                     .on_used = [this](const std::string& dataset) { OnUsed(dataset); }}));
  visitors_ = std::make_unique<NodeVisitors>(loop_, clock_, cluster_->authorizer(),
                                             cluster_->refusal_counters(), streams_);
  return OkStatus();
}

void Node::ConnectToCoordinator() {
  if (cluster_) {
    GoOnFromState();
  } else {
    plain_http_ = net::MakeHttpClient(
        loop_,
        {.max_body_bytes = kPlainBodyMax, .unix_socket = net::UnixPathOf(options_.coordinator)});
    plain_control_ = std::make_unique<ControlHttp>(*plain_http_, options_.coordinator);
  }
  control_ = std::make_unique<ControlClient>(
      loop_, cluster_ ? cluster_->control() : *plain_control_,
      ControlClient::Options{
          .node = options_.name, .version = state_.version, .seed = options_.incarnation},
      ControlClient::Hooks{
          .report = [this] { return MakeReport(); },
          .answered = [this](std::uint64_t batch) { savings_.OnAnswered(batch); },
          .apply = [this](const coordination::DesiredState& state) { Apply(state); },
          .trace = [this](const std::string& digest) { return streams_.TraceBytes(digest); },
          .shares =
              [this](const std::vector<coordination::DatasetShare>& shares) {
                rates_.OnShares(shares, clock_.Now());
                router_->TellShares();
              }});
  parts_ =
      std::make_unique<PlanParts>(*control_, cluster_ ? &cluster_->state_dir() : nullptr, state_);
  if (!cluster_) control_->Start();
}

// The coordinator may be away when this node comes back.
void Node::GoOnFromState() {
  const auto state = cluster_->state_dir().LoadState();
  if (!state) return;
  Log(LogLevel::kInfo, "going on with the state of the run before",
      {{"version", coordination::FormatVersion(state->version)}});
  Apply(*state);
}

// --- Desired states -----------------------------------------------------------------------------

// Once for each stream, when its ranks begin to disagree.
void Node::WarnOfConflicts(const coordination::DesiredState& next) const {
  std::set<StreamId> known;
  for (const auto* dataset : coordination::AllDatasets(state_)) {
    for (const auto& stream : dataset->streams) {
      if (!stream.conflict.empty()) known.insert(stream.id);
    }
  }
  for (const auto* dataset : coordination::AllDatasets(next)) {
    for (const auto& stream : dataset->streams) {
      if (stream.conflict.empty() || known.contains(stream.id)) continue;
      Log(LogLevel::kWarning, "ranks disagree, their order is not known: give all the same sampler",
          {{"stream", stream.name}, {"conflict", stream.conflict}});
    }
  }
}

void Node::Apply(const coordination::DesiredState& state) {
  WarnOfConflicts(state);
  state_ = state;
  const bool listed = ApplyMembers(state);
  if (cluster_) {
    cluster_->authorizer().OnState();
    cluster_->manifests().OnState(state_, listed ? self_ : 0);
    KeepState();
  }
  if (!listed) return;
  std::set<wire::DatasetKey> present;
  for (const auto* dataset : coordination::AllDatasets(state_)) {
    present.insert(dataset->key);
    ApplyDataset(*dataset);
  }
  std::erase_if(datasets_, [&](const auto& dataset) { return !present.contains(dataset.first); });
  if (disk_) disk_->KeepOnly(present);
}

// False while the state does not list this node: not yet, or not any more. What it holds stays for
// when it is listed again.
bool Node::ApplyMembers(const coordination::DesiredState& state) {
  const auto listed = std::ranges::find(state.members, options_.name, &coordination::Member::name);
  const wire::MemberId self = listed == state.members.end() ? 0 : listed->id;
  if (self != 0 && self != self_) {
    datasets_.clear();  // what was known under the old id is not ours any more
    self_ = self;
  }
  links_->SetMembers(self, state.members);
  return self != 0;
}

void Node::ApplyDataset(const coordination::DatasetState& state) {
  const auto found = datasets_.find(state.key);
  if (found == datasets_.end()) {
    if (Serves(state)) LoadManifest(state);
    return;
  }
  if (found->second->Apply(state, HomesOf(state), clock_.Now())) FetchParts(state);
  if (SharesItsGrant(state_, state.name) || IsOverbooked()) found->second->TrimToShare();
  if (visitors_) {
    for (const BorrowerId borrower : visitors_->Uninvited(state))
      found->second->cache().retention_manager().OnBorrowerGone(borrower);
  }
  if (const auto number = found->second->TakeInventoryRequest(); number != 0) {
    std::vector<coordination::RankPosition> positions = streams_.Positions(state.key);
    for (coordination::RankPosition& position : positions)
      position.planned = found->second->book().Decides({.stream = position.stream,
                                                        .pass = position.next.pass,
                                                        .position = position.next.position});
    control_->SendInventory({.node = options_.name,
                             .incarnation = options_.incarnation,
                             .dataset = state.name,
                             .request = number,
                             .ids = found->second->cache().retention_manager().Inventory(
                                 ending_ ? ending_->on_disk : RetentionManager::OnDisk::kGoes),
                             .positions = std::move(positions)});
  }
}

// What datasets are due, and what some hold beyond that, is more than the node offers. What they
// hold while it moves is not counted: there is a reserve for it.
bool Node::IsOverbooked() const {
  ByteCount all = 0;
  for (const auto* dataset : coordination::AllDatasets(state_)) {
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
  return all > options_.memory + (disk_ ? disk_->offered() : 0);
}

// It is placed here, or pods of this machine read it. On a laptop everything is everywhere.
bool Node::Serves(const coordination::DatasetState& state) const {
  return !cluster_ || used_.contains(state.name) ||
         std::ranges::find(state.capacities, self_, &coordination::MemberCapacity::member) !=
             state.capacities.end();
}

// Whom to ask for a sample: those on which the dataset is placed and that stay.
std::vector<wire::MemberId> Node::HomesOf(const coordination::DatasetState& state) const {
  std::vector<wire::MemberId> homes;
  std::vector<wire::MemberId> all;
  for (const auto& member : state_.members) {
    if (!member.leaving) all.push_back(member.id);
  }
  for (const auto& capacity : state.capacities) {
    const bool stays = !capacity.departs && std::ranges::binary_search(all, capacity.member);
    if (stays) homes.push_back(capacity.member);
  }
  return homes.empty() ? all : homes;
}

// A name that the state does not list may be made up, each time another.
void Node::OnUsed(const std::string& dataset) {
  if (used_.size() >= kMaxUsed) {
    std::erase_if(used_, [this](const auto& name) {
      return coordination::FindDataset(state_, name) == nullptr;
    });
  }
  if (!used_.insert(dataset).second) return;
  if (self_ == 0) return;
  for (const auto* one : coordination::AllDatasets(state_)) {
    if (one->name == dataset) ApplyDataset(*one);
  }
}

void Node::LoadManifest(const coordination::DatasetState& state) {
  if (!loading_.insert(state.key).second) return;
  const auto done = [this, state](Result<SharedBytes> bytes) {
    OnManifest(state, std::move(bytes));
  };
  if (cluster_) {
    cluster_->manifests().Get(state.manifest_digest, done);
  } else {
    control_->FetchManifest(state.manifest_digest, done);
  }
}

// Taking a manifest apart takes seconds where it is large, in which others are served.
void Node::OnManifest(const coordination::DatasetState& state, Result<SharedBytes> bytes) {
  if (!bytes) return OnListing(state.key, Error(bytes.error()));
  const auto listing = std::make_shared<Result<Listing>>(Error(Code::kInternal, "not read"));
  const Status begun = worker_.Run(
      [listing, digest = state.manifest_digest, bytes = *std::move(bytes)]() mutable {
        *listing = ReadListing(std::move(bytes), digest);
      },
      [this, key = state.key, listing] { OnListing(key, std::move(*listing)); });
  if (!begun.ok()) OnListing(state.key, Error(begun));
}

void Node::OnListing(wire::DatasetKey key, Result<Listing> listing) {
  loading_.erase(key);
  const coordination::DatasetState* const wanted = coordination::FindDataset(state_, key);
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
  // Looked at on the loop's thread alone. What a deriver tells that ends is of no later Dataset.
  const auto derived_for = std::make_shared<std::weak_ptr<NodeDataset>>();
  const auto take = guard_.Wrap([this, derived_for](DerivedWindow window) {
    const std::shared_ptr<NodeDataset> dataset = derived_for->lock();
    if (dataset) dataset->OnDerived(std::move(window), clock_.Now());
  });
  datasets_[key] = std::make_shared<NodeDataset>(
      *wanted, self_, std::move(listing->sizes), std::move(listing->digests), *links_,
      [&loop = loop_, take](DerivedWindow window) {
        loop.Post([take = take, window = std::move(window)]() mutable { take(std::move(window)); });
      },
      deriver_ends_);
  *derived_for = datasets_[key];
  if (ending_) datasets_[key]->OnEnding(*ending_);
  if (disk_) datasets_[key]->cache().UseDisk(disk_->TierOf(key), disk_->state(), clock_.Now());
  ApplyDataset(*wanted);
}

// On the volume before long; the next one follows this one.
void Node::KeepState() {
  const auto kept = std::make_shared<Status>();
  const Status begun = worker_.Run(
      [kept, dir = cluster_->state_dir(), state = state_] { *kept = dir.SaveState(state); },
      [kept] {
        if (kept->ok()) return;
        Log(LogLevel::kWarning, "the state is not kept", {{"why", kept->ToString()}});
      });
  if (!begun.ok()) Log(LogLevel::kWarning, "the state is not kept", {{"why", begun.ToString()}});
}

void Node::FetchParts(const coordination::DatasetState& state) {
  parts_->Get(state, [this, key = state.key, planned = state.planned,
                      name = state.name](Result<PlanParts::Parts> parts) {
    const auto found = datasets_.find(key);
    if (found == datasets_.end() || found->second->state().planned != planned) return;
    if (!parts) {
      Log(LogLevel::kError, "no base or lists for the plan",
          {{"dataset", name}, {"why", parts.error().ToString()}});
      return found->second->OnNoParts(parts.error());
    }
    found->second->StartPlan(std::move(parts->base), std::move(parts->lists));
  });
}

coordination::Report Node::MakeReport() {
  coordination::Report report{.node = options_.name,
                              .incarnation = options_.incarnation,
                              .address = options_.advertise,
                              .metrics = metrics_url_,
                              .capacity = options_.memory,
                              .disk = disk_ ? disk_->offered() : 0,
                              .leaving = ending_.has_value(),
                              .member = self_,
                              .applied = state_.version,
                              .streams = streams_.Report(),
                              .savings = savings_.Batch(),
                              .demands = rates_.Report()};
  for (const auto& [key, dataset] : datasets_) {
    auto& reports = coordination::IsRetiring(state_, key) ? report.retiring : report.datasets;
    reports.push_back(dataset->Report());
    reports.back().store = stores_.Report(key, clock_.Now());
  }
  if (cluster_) {
    report.manifest_url = cluster_->manifests().url();
    report.manifests = cluster_->manifests().Digests();
  }
  return report;
}

}  // namespace optcache::node
