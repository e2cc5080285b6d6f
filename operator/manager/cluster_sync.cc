// Looks every 50 ms whether something has changed on which placement depends, and plans all
// Datasets again if so.
//
// Tick goes in this order: what nodes say (status, savings, reads), a new plan if that or an object
// of Kubernetes is another than the plan goes by, the coordinator's own tick, then news for the
// Datasets' statuses. Placement comes before the tick because the tick may publish. The decision
// itself is pure (reconcile/cluster); here are its inputs, and what was decided last, to be
// compared with. A process that has stood still does nothing before its leadership is checked
// again. While the coordinator learns who is there, nothing is known of any Dataset and nothing is
// said.

#include "operator/manager/cluster_sync.h"

#include <algorithm>
#include <utility>

#include "base/time_text.h"
#include "operator/reconcile/dataset/observe.h"
#include "operator/reconcile/dataset/plan_choice.h"
#include "operator/reconcile/warmup/warm_job.h"

namespace optcache::manager {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(50);
constexpr Duration kLookEvery = std::chrono::seconds(1);
// Nodes report every second. A leader that has heard of none for this long says so.
constexpr Duration kNobodyAfter = std::chrono::minutes(1);
constexpr Duration kAtAll = Duration(-1);  // longer than this: now
constexpr std::size_t kMaxDatasetsOfPod = 16;

kube::ObjectKey ToKey(const std::string& qualified) {
  const std::size_t slash = qualified.find('/');
  return {.ns = qualified.substr(0, slash), .name = qualified.substr(slash + 1)};
}

// The Datasets that a pod's annotation names: "imagenet, vision/coco".
std::vector<kube::ObjectKey> DatasetsOf(const kube::Json& pod) {
  std::vector<kube::ObjectKey> keys;
  const std::string list = kube::AnnotationOf(pod, kDatasetAnnotation).value_or("");
  for (std::size_t begin = 0; begin < list.size() && keys.size() < kMaxDatasetsOfPod;) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    std::string name = list.substr(begin, comma - begin);
    std::erase(name, ' ');
    begin = comma + 1;
    if (name.empty()) continue;
    if (name.find('/') == std::string::npos) name = kube::KeyOf(pod).ns + "/" + name;
    keys.push_back(ToKey(name));
  }
  return keys;
}

std::uint64_t GpusOf(const kube::Json& node) {
  std::uint64_t gpus = 0;
  const kube::Json& allocatable = kube::Find(node, "/status/allocatable");
  if (!allocatable.is_object()) return 0;
  for (const auto& [resource, amount] : allocatable.items()) {
    if (!IsGpu(resource) || !amount.is_string()) continue;
    gpus += ParseQuantity(amount.get_ref<const std::string&>()).value_or(0);
  }
  return gpus;
}

void TakeNode(const kube::Json& node, reconcile::MemberMachine& machine) {
  const kube::Json& labels = kube::Find(node, "/metadata/labels");
  if (labels.is_object()) {
    for (const auto& [label, value] : labels.items()) {
      if (value.is_string()) machine.labels.emplace(label, value.get<std::string>());
    }
  }
  machine.gpus = GpusOf(node);
  machine.cordoned = kube::BoolAt(node, "/spec/unschedulable");
  machine.leaving = machine.leaving || kube::IsBeingDeleted(node);
}

}  // namespace

ClusterSync::ClusterSync(Parts parts, std::function<void(const kube::ObjectKey&)> on_placed,
                         std::function<void()> on_begun)
    : parts_(parts),
      on_placed_(std::move(on_placed)),
      on_begun_(std::move(on_begun)),
      tick_(parts.loop, kTick, [this] { Tick(); }) {}

// Placement goes before the coordinator's tick: a successor that has learned who is there publishes
// its first state in that tick, and must not place Datasets nowhere.
void ClusterSync::Tick() {
  // One that was frozen would take everybody for silent, and say so to those who still listen.
  if (!parts_.leads() || !parts_.watches.Missing().empty()) return;
  const coordination::Coordinator& coordinator = parts_.service.coordinator();
  const MonotonicTime now = parts_.clock.Now();
  const bool changed = touched_ || coordinator.state().version != seen_ || coordinator.learning();
  if (changed || now - looked_at_ >= kLookEvery) {
    looked_at_ = now;
    seen_ = coordinator.state().version;
    status_ = parts_.service.Status();
    touched_ = touched_ || cordons_.Meant(now) != draining_;
    reconcile::ClusterSigns signs = reconcile::SignsOf(status_);
    TakeSavings();
    const bool others_read = TakeReads(now);
    auto warmed = reconcile::MachinesBeingWarmed(
        parts_.watches.jobs.cache(), parts_.watches.job_pods.cache(), parts_.clock.UnixSeconds());
    const bool others_are_warmed = warmed_ != warmed;
    warmed_ = std::move(warmed);
    if (!coordinator.learning()) {
      missing_.Look({.machines = machines_,
                     .status = status_,
                     .placed = plan_.placed,
                     .now = now,
                     .unix_seconds = parts_.clock.UnixSeconds()});
    }
    if (touched_ || others_read || others_are_warmed || signs != signs_ || OrdersHaveChanged() ||
        SettleReads(now))
      Replan(signs);
    drift_.Look(plan_.specs, status_, now);
  }
  parts_.service.Tick();
  // Who was told of a placement looks at once, and not again if there is nothing to see.
  if (coordinator.state().version != seen_) status_ = parts_.service.Status();
  LookWhatIsKnown(now);
  if (std::exchange(begun_, true)) return;
  begun_at_ = now;
  on_begun_();
}

// Nothing is known of any Dataset before nodes have been heard; all that is placed by then is news.
void ClusterSync::LookWhatIsKnown(MonotonicTime now) {
  const bool learning = parts_.service.coordinator().learning();
  const bool nobody =
      begun_ && learning && status_.members.empty() && now - begun_at_ > kNobodyAfter;
  const bool learned = std::exchange(learning_, learning) && !learning;
  if (std::exchange(nobody_, nobody) == nobody && !learned) return;
  for (const auto& [dataset, placed] : plan_.placed)
    on_placed_(ToKey(dataset));
}

// Not while it learns: by then the statuses have what the leader before wrote last.
void ClusterSync::TakeSavings() {
  if (parts_.service.coordinator().learning()) return;
  std::vector<reconcile::SavedBefore> datasets;
  for (const auto& [key, known] : parts_.datasets.all()) {
    datasets.push_back(
        {.name = key.ToString(),
         .uid = known.uid,
         .saved = known.status.saved ? known.status.saved->saved : coordination::Savings{}});
  }
  saved_.Take(datasets, parts_.service.CollectSavings());
}

// While it learns, jobs are heard one by one: all of them are there at the last such look, and have
// together the rate that the Dataset's status remembers.
bool ClusterSync::TakeReads(MonotonicTime now) {
  if (learning_) {
    reads_ = {};
    for (const auto& [key, known] : parts_.datasets.all()) {
      if (known.status.capacity)
        reads_.Remember(key.ToString(), static_cast<double>(known.status.capacity->read_rate));
    }
  }
  return reads_.Observe(coordination::ReadsOf(status_), now);
}

// Rates are settled again where memory divided by those of now saves enough more.
bool ClusterSync::SettleReads(MonotonicTime now) {
  const bool enough =
      std::ranges::all_of(plan_.placed, [](const auto& item) { return item.second.HasAll(); });
  return !enough && reads_.SettleIfWorthwhile(now, [this](const coordination::ClusterReads& rates) {
    const reconcile::ClusterObserved observed = Observe(rates);
    return coordination::SettledReads::Savings{.then = SavedBy(PlanCluster(observed), observed),
                                               .now = SavedBy(plan_, observed)};
  });
}

void ClusterSync::Replan(const reconcile::ClusterSigns& signs) {
  if (std::exchange(touched_, false)) LookAtMachines();
  signs_ = signs;
  const reconcile::ClusterObserved observed = Observe(reads_.in_force());
  reconcile::ClusterPlan plan = reconcile::PlanCluster(observed);
  std::map<std::string, reconcile::RevisionInForce> in_force;
  orders_.clear();
  rollouts_.clear();
  for (const reconcile::ClusterDataset& dataset : observed.datasets) {
    const std::string name = dataset.QualifiedName();
    orders_.emplace(name, reconcile::OrdersOf(dataset.rollout, observed, name));
    rollouts_.emplace(name, dataset.rollout);
    in_force[name] = {.hash = dataset.revision, .content = dataset.plan};
  }
  if (plan.specs != plan_.specs) parts_.service.SetDatasets(plan.specs, {});
  in_force_ = std::move(in_force);
  std::set<std::string> moved;
  std::map<std::string, MonotonicTime> placed_at;
  for (const auto& [dataset, placed] : plan.placed) {
    const auto before = plan_.placed.find(dataset);
    const bool same_nodes =
        before != plan_.placed.end() && before->second.members == placed.members;
    placed_at[dataset] = same_nodes ? placed_at_.at(dataset) : parts_.clock.Now();
    if (before == plan_.placed.end() || before->second != placed) moved.insert(dataset);
  }
  for (const std::string& dataset : plan.too_many) {
    if (!plan_.too_many.contains(dataset)) moved.insert(dataset);
  }
  plan_ = std::move(plan);
  placed_at_ = std::move(placed_at);
  for (const std::string& dataset : moved)
    on_placed_(ToKey(dataset));
}

// Nodes have said something on which it depends who follows what.
bool ClusterSync::OrdersHaveChanged() const {
  const reconcile::ClusterObserved observed{.state = &parts_.service.coordinator().state(),
                                            .status = &status_};
  return std::ranges::any_of(rollouts_, [&](const auto& item) {
    const auto& [dataset, rollout] = item;
    return rollout.activated &&
           reconcile::OrdersOf(rollout, observed, dataset) != orders_.at(dataset);
  });
}

reconcile::RevisionInForce ClusterSync::InForce(const std::string& dataset) const {
  const auto found = in_force_.find(dataset);
  return found == in_force_.end() ? reconcile::RevisionInForce{} : found->second;
}

reconcile::ClusterObserved ClusterSync::Observe(const coordination::ClusterReads& reads) const {
  reconcile::ClusterObserved observed{.machines = &machines_,
                                      .state = &parts_.service.coordinator().state(),
                                      .status = &status_,
                                      .reads = &reads,
                                      .warmed = &warmed_};
  const std::set<kube::ObjectKey> with_gpus = DatasetsOfGpuPods();
  for (const auto& [key, known] : parts_.datasets.all()) {
    const auto plans = reconcile::PlansOf(key, known.uid, parts_.watches.plans.cache());
    observed.datasets.push_back({.ns = key.ns,
                                 .name = key.name,
                                 .created = known.created,
                                 .spec = known.spec,
                                 .status = known.status,
                                 .wants_gpus = with_gpus.contains(key)});
    reconcile::TakeRevisions(reconcile::ChoosePlan(plans), parts_.watches.plans.cache(),
                             parts_.watches.revisions.cache(), InForce(key.ToString()),
                             observed.datasets.back());
  }
  return observed;
}

void ClusterSync::LookAtMachines() {
  machines_.clear();
  std::set<std::string> cordoned;
  for (const auto& pod : parts_.watches.node_pods.cache().List()) {
    const std::string created = kube::TextAt(*pod, "/metadata/creationTimestamp");
    reconcile::MemberMachine machine{.node = kube::TextAt(*pod, "/spec/nodeName"),
                                     .created_at = ParseTime(created).value_or(0),
                                     .leaving = kube::IsBeingDeleted(*pod)};
    const auto node = parts_.watches.nodes.cache().Find({.ns = "", .name = machine.node});
    if (node != nullptr) TakeNode(*node, machine);
    if (machine.cordoned) cordoned.insert(machine.node);
    machines_.emplace(kube::KeyOf(*pod).name, std::move(machine));
  }
  const MonotonicTime now = parts_.clock.Now();
  cordons_.Observe(cordoned, now);
  draining_ = cordons_.Meant(now);
  for (auto& [member, machine] : machines_)
    machine.draining = draining_.contains(machine.node);
}

std::set<kube::ObjectKey> ClusterSync::DatasetsOfGpuPods() const {
  std::set<kube::ObjectKey> datasets;
  for (const auto& pod : parts_.watches.training_pods.cache().List()) {
    if (!kube::BoolAt(*pod, kWantsGpus)) continue;
    for (kube::ObjectKey& key : DatasetsOf(*pod))
      datasets.insert(std::move(key));
  }
  return datasets;
}

std::optional<reconcile::Placed> ClusterSync::PlacedOf(const std::string& dataset) const {
  if (nobody_) {
    return reconcile::Placed{.dataset = dataset,
                             .reason = reconcile::PlacedReason::kNoNodes,
                             .message = "no node has reported to the operator"};
  }
  if (!begun_ || parts_.service.coordinator().learning()) return std::nullopt;
  const auto found = plan_.placed.find(dataset);
  return found == plan_.placed.end() ? std::nullopt : std::optional(found->second);
}

Duration ClusterSync::PlacedFor(const std::string& dataset) const {
  const auto placed = plan_.placed.find(dataset);
  if (placed == plan_.placed.end() || placed->second.members.empty()) return Duration::zero();
  return parts_.clock.Now() - placed_at_.at(dataset);
}

std::optional<coordination::Savings> ClusterSync::SavedOf(const std::string& dataset) const {
  const coordination::Savings* const saved = saved_.Of(dataset);
  return saved == nullptr ? std::nullopt : std::optional(*saved);
}

std::optional<reconcile::CacheView> ClusterSync::ViewOf(const std::string& dataset) const {
  if (!begun_ || parts_.service.coordinator().learning()) return std::nullopt;
  return reconcile::ViewOf(
      {.machines = &machines_, .state = &parts_.service.coordinator().state(), .status = &status_},
      dataset);
}

std::optional<reconcile::PlanView> ClusterSync::PlanViewOf(const std::string& dataset) const {
  if (!begun_ || parts_.service.coordinator().learning()) return std::nullopt;
  auto view = reconcile::PlanViewOf(
      {.state = &parts_.service.coordinator().state(), .status = &status_, .placed = &plan_.placed},
      dataset);
  if (!view) return view;
  view->drifted = drift_.Of(dataset);
  view->some_drift = drift_.Begins(dataset);
  view->missing = MissingOf(dataset, reconcile::kMissingAfter);
  view->some_are_absent = !MissingOf(dataset, kAtAll).empty();
  view->all_known = KnowsAll();
  return view;
}

std::vector<std::string> ClusterSync::MissingOf(const std::string& dataset,
                                                Duration longer_than) const {
  const auto known = parts_.datasets.all().find(ToKey(dataset));
  const auto placed = plan_.placed.find(dataset);
  if (known == parts_.datasets.all().end() || placed == plan_.placed.end()) return {};
  return missing_.Of(placed->second, known->second.spec.placement, longer_than);
}

// A leader that has just begun hears of streams node by node, and grants memory when it has heard
// of them: what is placed and granted goes by all that have been heard.
bool ClusterSync::KnowsAll() const {
  const coordination::DesiredState& granted = parts_.service.coordinator().state();
  if (granted.members.size() != status_.members.size() || reconcile::SignsOf(status_) != signs_)
    return false;
  const bool all_have_reported = std::ranges::all_of(machines_, [this](const auto& machine) {
    return std::ranges::find(status_.members, machine.first, &coordination::MemberStatus::name) !=
           status_.members.end();
  });
  return all_have_reported || parts_.service.coordinator().KnowsStreams(parts_.clock.Now());
}

void ClusterSync::VisitCounters(const CounterVisitor& visitor) const {
  visitor(MetricKind::kGauge, "optcache_coordinator_members", {},
          static_cast<double>(status_.members.size()));
  visitor(MetricKind::kGauge, "optcache_coordinator_datasets", {},
          static_cast<double>(plan_.specs.size()));
  visitor(MetricKind::kGauge, "optcache_coordinator_polls", {},
          static_cast<double>(parts_.service.polls()));
}

}  // namespace optcache::manager
