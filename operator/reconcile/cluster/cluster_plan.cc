#include "operator/reconcile/cluster/cluster_plan.h"

#include <algorithm>
#include <tuple>

#include "dataset/digest.h"

namespace optcache::reconcile {
namespace {

// A node that holds less than this share of what its equals hold is not worth memory any more.
constexpr ByteCount kHolderShare = 20;

std::map<coordination::MemberId, std::string> NamesOf(const coordination::DesiredState& state) {
  std::map<coordination::MemberId, std::string> names;
  for (const coordination::Member& member : state.members)
    names.emplace(member.id, member.name);
  return names;
}

std::set<std::string> HoldersOf(const coordination::DatasetStatus& dataset) {
  ByteCount most = 0;
  for (const coordination::NodeShare& node : dataset.nodes)
    most = std::max(most, node.used);
  std::set<std::string> holders;
  for (const coordination::NodeShare& node : dataset.nodes) {
    if (node.used > most / kHolderShare) holders.insert(node.name);
  }
  return holders;
}

const coordination::DatasetStatus* StatusOf(const ClusterObserved& observed,
                                            const std::string& dataset) {
  const auto found =
      std::ranges::find(observed.status->datasets, dataset, &coordination::DatasetStatus::name);
  return found == observed.status->datasets.end() ? nullptr : &*found;
}

// Of all its manifests that are read.
std::vector<coordination::StreamStatus> StreamsOf(const coordination::ClusterStatus& status,
                                                  const std::string& dataset) {
  std::vector<coordination::StreamStatus> streams;
  for (const auto* list : {&status.datasets, &status.retiring}) {
    for (const coordination::DatasetStatus& one : *list) {
      if (one.name == dataset)
        streams.insert(streams.end(), one.streams.begin(), one.streams.end());
    }
  }
  return streams;
}

// How many jobs read a manifest that the Dataset had before. A stream is
// NAMESPACE/JOB/DATASET/LOADER.
std::size_t JobsOfBefore(const coordination::ClusterStatus& status, const std::string& dataset) {
  std::set<std::string> jobs;
  for (const coordination::DatasetStatus& one : status.retiring) {
    if (one.name != dataset) continue;
    for (const coordination::StreamStatus& stream : one.streams)
      jobs.insert(stream.name.substr(0, stream.name.find('/', stream.name.find('/') + 1)));
  }
  return jobs.size();
}

// The members on which it is placed.
std::set<std::string> PlacedOn(const ClusterObserved& observed, const std::string& dataset) {
  std::set<std::string> members;
  const auto state =
      std::ranges::find(observed.state->datasets, dataset, &coordination::DatasetState::name);
  if (state == observed.state->datasets.end()) return members;
  const auto names = NamesOf(*observed.state);
  for (const coordination::MemberCapacity& capacity : state->capacities) {
    if (const auto name = names.find(capacity.member); name != names.end())
      members.insert(name->second);
  }
  return members;
}

std::vector<api::NodeBytes> NodesOf(const ClusterObserved& observed,
                                    const coordination::DatasetStatus& dataset) {
  std::map<std::string, ByteCount> members;
  for (const std::string& member : PlacedOn(observed, dataset.name))
    members.emplace(member, 0);
  for (const coordination::NodeShare& share : dataset.nodes) {
    if (share.used > 0) members[share.name] = share.used;
  }
  std::map<std::string, ByteCount> nodes;  // during an update a machine may have two members
  for (const auto& [member, bytes] : members) {
    const auto machine = observed.machines->find(member);
    if (machine != observed.machines->end() && !machine->second.node.empty())
      nodes[machine->second.node] += bytes;
  }
  std::vector<api::NodeBytes> list;
  list.reserve(nodes.size());
  for (const auto& [node, bytes] : nodes)
    list.push_back({.name = node, .bytes = bytes});
  return list;
}

std::vector<Machine> MachinesOf(const ClusterObserved& observed) {
  std::vector<Machine> machines;
  for (const coordination::MemberStatus& member : observed.status->members) {
    Machine machine{.member = member.name, .memory = member.capacity};
    const auto known = observed.machines->find(member.name);
    if (known != observed.machines->end()) {
      machine.node = known->second.node;
      machine.labels = known->second.labels;
      machine.gpus = known->second.gpus;
      machine.cordoned = known->second.cordoned;
      machine.draining = known->second.draining;
      machine.leaving = known->second.leaving;
    }
    machines.push_back(std::move(machine));
  }
  return machines;
}

const coordination::DatasetReads& ReadsOf(const ClusterObserved& observed,
                                          const std::string& dataset) {
  static const coordination::DatasetReads nobody;
  if (observed.reads == nullptr) return nobody;
  const auto found = observed.reads->find(dataset);
  return found == observed.reads->end() ? nobody : found->second;
}

std::vector<coordination::Worth> WorthOf(const ClusterDataset& dataset,
                                         const coordination::DatasetReads& reads) {
  return coordination::WorthOf(reads, dataset.status.bytes, dataset.plan.retention);
}

Demand DemandOf(const ClusterDataset& dataset, const ClusterSigns& signs,
                const coordination::DatasetReads& reads) {
  const std::string name = dataset.QualifiedName();
  Demand demand{.dataset = name,
                .wanted = dataset.spec.capacity.Of(dataset.status.bytes),
                .floor = dataset.spec.FloorOf(dataset.status.bytes),
                .worth = WorthOf(dataset, reads),
                .read = coordination::RateOf(reads),
                .measured = coordination::IsMeasured(reads),
                .node_selector = dataset.spec.placement.node_selector,
                .max_nodes = dataset.spec.placement.max_nodes,
                .wants_gpus = dataset.wants_gpus};
  if (const auto readers = signs.readers.find(name); readers != signs.readers.end())
    demand.readers = readers->second;
  if (const auto holders = signs.holders.find(name); holders != signs.holders.end())
    demand.holders = holders->second;
  return demand;
}

coordination::DatasetSpec SpecOf(const ClusterDataset& dataset, const Placed& placed) {
  coordination::DatasetSpec spec{
      .name = dataset.QualifiedName(),
      .manifest_digest = dataset.status.manifest_digest,
      .key = dataset::KeyOf(dataset.QualifiedName(), dataset.status.manifest_digest),
      .samples = dataset.status.samples,
      .bytes = dataset.status.bytes,
      .capacity = placed.granted,
      .retention = dataset.plan.retention,
      .objective = dataset.plan.objective,
      .namespaces = {dataset.ns},
      .placed = placed.members,
      .shares = placed.shares};
  for (const api::Access& access : dataset.spec.access) {
    if (access.ns != dataset.ns) spec.namespaces.push_back(access.ns);
  }
  return spec;
}

}  // namespace

ClusterPlan PlanCluster(const ClusterObserved& observed) {
  std::vector<const ClusterDataset*> indexed;
  for (const ClusterDataset& dataset : observed.datasets) {
    if (!dataset.status.manifest_digest.empty()) indexed.push_back(&dataset);
  }
  std::ranges::sort(indexed, {}, [](const ClusterDataset* dataset) {
    return std::tuple(dataset->created, dataset->QualifiedName());
  });
  ClusterPlan plan;
  while (indexed.size() > coordination::kMaxDatasets) {
    plan.too_many.insert(indexed.back()->QualifiedName());
    indexed.pop_back();
  }
  const ClusterSigns signs = SignsOf(*observed.status);
  std::vector<Demand> demands;
  demands.reserve(indexed.size());
  for (const ClusterDataset* dataset : indexed)
    demands.push_back(DemandOf(*dataset, signs, ReadsOf(observed, dataset->QualifiedName())));
  const std::vector<Placed> placed = Place(MachinesOf(observed), demands);
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    plan.specs.push_back(SpecOf(*indexed[i], placed[i]));
    if (placed[i].granted < demands[i].wanted) plan.specs.back().note = placed[i].why;
    plan.placed.emplace(placed[i].dataset, placed[i]);
  }
  return plan;
}

double SavedBy(const ClusterPlan& plan, const ClusterObserved& observed) {
  double saved = 0;
  for (const ClusterDataset& dataset : observed.datasets) {
    const std::string name = dataset.QualifiedName();
    const auto placed = plan.placed.find(name);
    if (placed == plan.placed.end()) continue;
    saved +=
        coordination::SavedBy(WorthOf(dataset, ReadsOf(observed, name)), placed->second.granted);
  }
  return saved;
}

ClusterSigns SignsOf(const coordination::ClusterStatus& status) {
  ClusterSigns signs;
  for (const coordination::MemberStatus& member : status.members)
    signs.members.emplace(member.name, member.capacity);
  // A manifest that jobs still read lies where its Dataset is placed.
  for (const auto* list : {&status.datasets, &status.retiring}) {
    for (const coordination::DatasetStatus& dataset : *list) {
      if (!dataset.readers.empty())
        signs.readers[dataset.name].insert(dataset.readers.begin(), dataset.readers.end());
      if (const auto holders = HoldersOf(dataset); !holders.empty())
        signs.holders[dataset.name].insert(holders.begin(), holders.end());
    }
  }
  return signs;
}

std::optional<CacheView> ViewOf(const ClusterObserved& observed, const std::string& dataset) {
  const coordination::DatasetStatus* const known = StatusOf(observed, dataset);
  if (known == nullptr) return std::nullopt;
  CacheView view{.manifest_digest = known->manifest_digest,
                 .manifest_holders = known->manifest_holders,
                 .manifest_missed_seconds = known->manifest_missed_seconds,
                 .cached_bytes = known->sum.used_bytes,
                 .hit_ratio = coordination::ObservedHitRatio(known->sum),
                 .plans_agree = known->digests_agree};
  if (known->planned != coordination::Version{} && !known->plan_digest.empty())
    view.predicted_hit_ratio = known->sum.predicted_hit_ratio;
  view.nodes = NodesOf(observed, *known);
  for (const coordination::StreamStatus& stream : StreamsOf(*observed.status, dataset)) {
    if (!stream.conflict.empty()) view.conflicts.push_back(stream.name + ": " + stream.conflict);
  }
  view.jobs_of_before = JobsOfBefore(*observed.status, dataset);
  return view;
}

std::optional<PlanView> PlanViewOf(const ClusterObserved& observed, const std::string& dataset) {
  const coordination::DatasetStatus* const known = StatusOf(observed, dataset);
  if (known == nullptr) return std::nullopt;
  PlanView view{.digest = known->plan_digest,
                .observed_hit_ratio = coordination::ObservedHitRatio(known->sum)};
  if (!known->plan_digest.empty()) view.predicted_hit_ratio = known->sum.predicted_hit_ratio;
  const std::set<std::string> placed = PlacedOn(observed, dataset);
  for (const coordination::MemberStatus& member : observed.status->members) {
    if (!placed.contains(member.name)) continue;
    ++view.nodes_desired;
    if (member.applied >= known->planned) ++view.nodes_active;
  }
  for (const coordination::StreamStatus& stream : StreamsOf(*observed.status, dataset)) {
    view.jobs.push_back({.name = stream.name,
                         .pass = stream.pass,
                         .position = stream.position,
                         .length = stream.length,
                         .ranks = stream.ranks,
                         .rate = stream.rate,
                         .order_known = stream.order_known && stream.conflict.empty()});
  }
  return view;
}

}  // namespace optcache::reconcile
