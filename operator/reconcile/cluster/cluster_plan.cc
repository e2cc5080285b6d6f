// Turns Datasets, machines and what the coordinator knows into the coordinator's Datasets, and back
// into views.
//
//   indexed Datasets, by age ─► DemandOf ─► Place ─► SpecOf ─► Assign: revisions to follow, to try
//
// Datasets beyond the limit are the youngest, so one that is served stays served. A machine may
// have two members during an update: sums for people are by machine, shares are by member. The
// views are for the statuses of Dataset and CachePlan.

#include "operator/reconcile/cluster/cluster_plan.h"

#include <algorithm>
#include <tuple>

#include "dataset/digest.h"
#include "operator/api/job_recipes.h"
#include "operator/reconcile/cluster/plan_jobs.h"
#include "wire/stream_id.h"

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
std::vector<const coordination::DatasetStatus*> ManifestsOf(
    const coordination::ClusterStatus& status, const std::string& dataset) {
  std::vector<const coordination::DatasetStatus*> manifests;
  for (const auto* list : {&status.datasets, &status.retiring}) {
    for (const coordination::DatasetStatus& one : *list) {
      if (one.name == dataset) manifests.push_back(&one);
    }
  }
  return manifests;
}

std::vector<coordination::StreamStatus> StreamsOf(const coordination::ClusterStatus& status,
                                                  const std::string& dataset) {
  std::vector<coordination::StreamStatus> streams;
  for (const coordination::DatasetStatus* manifest : ManifestsOf(status, dataset))
    streams.insert(streams.end(), manifest->streams.begin(), manifest->streams.end());
  return streams;
}

// What the rollout of the CachePlan goes by: streams and passes of all manifests, and the memory
// granted for them.
void ReadManifests(const coordination::ClusterStatus& status, const std::string& dataset,
                   PlanView& view) {
  for (const coordination::DatasetStatus* manifest : ManifestsOf(status, dataset)) {
    view.memory += manifest->capacity;
    view.passes.insert(view.passes.end(), manifest->passes.begin(), manifest->passes.end());
    for (const coordination::StreamStatus& stream : manifest->streams) {
      view.streams.push_back({.id = wire::StreamIdOf(stream.name, stream.incarnation),
                              .name = stream.name,
                              .manifest = manifest->manifest_digest,
                              .pass = stream.pass,
                              .gathering = stream.ranks < stream.world,
                              .order_known = stream.order_known && stream.conflict.empty()});
    }
  }
  std::ranges::stable_sort(view.passes, {}, [](const coordination::PassStatus& pass) {
    return std::pair(pass.sum.stream, pass.sum.pass);
  });
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
  if (observed.placed != nullptr) {
    const auto placed = observed.placed->find(dataset);
    if (placed != observed.placed->end())
      members.insert(placed->second.members.begin(), placed->second.members.end());
    return members;
  }
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

// Where the coordinator has placed it, by Kubernetes nodes, with what they have granted.
std::vector<api::NodeBytes> GrantsOf(const ClusterObserved& observed, const std::string& dataset) {
  const auto state =
      std::ranges::find(observed.state->datasets, dataset, &coordination::DatasetState::name);
  if (state == observed.state->datasets.end()) return {};
  const auto names = NamesOf(*observed.state);
  std::map<std::string, ByteCount> nodes;  // during an update a machine may have two members
  for (const coordination::MemberCapacity& capacity : state->capacities) {
    const auto name = names.find(capacity.member);
    if (name == names.end() || capacity.departs) continue;
    const auto machine = observed.machines->find(name->second);
    if (machine != observed.machines->end() && !machine->second.node.empty())
      nodes[machine->second.node] += capacity.bytes;
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
    Machine machine{.member = member.name, .memory = member.capacity, .disk = member.disk};
    const auto known = observed.machines->find(member.name);
    if (known != observed.machines->end()) {
      machine.node = known->second.node;
      machine.labels = known->second.labels;
      machine.gpus = known->second.gpus;
      machine.cordoned = known->second.cordoned;
      machine.draining = known->second.draining;
      machine.leaving = known->second.leaving;
    } else {
      machine.leaving = true;  // its pod is gone: it is a member until it has been silent for long
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

std::vector<coordination::MarginalBenefit> MarginalBenefitOf(
    const ClusterDataset& dataset, const coordination::DatasetReads& reads) {
  return coordination::MarginalBenefitOf(reads, dataset.status.bytes, dataset.plan.retention);
}

// Members on machines that a warm-up fills: they will hold its bytes, as soon as the first of them
// does.
void AddWarmed(const ClusterObserved& observed, Demand& demand) {
  if (observed.warmed == nullptr) return;
  const auto nodes = observed.warmed->find(demand.dataset);
  if (nodes == observed.warmed->end()) return;
  for (const auto& [member, machine] : *observed.machines) {
    if (!machine.leaving && nodes->second.contains(machine.node)) demand.holders.insert(member);
  }
}

Demand DemandOf(const ClusterDataset& dataset, const ClusterSigns& signs,
                const ClusterObserved& observed) {
  const std::string name = dataset.QualifiedName();
  const coordination::DatasetReads& reads = ReadsOf(observed, name);
  Demand demand{.dataset = name,
                .wanted = dataset.spec.capacity.Of(dataset.status.bytes),
                .guaranteed = dataset.spec.GuaranteedOf(dataset.status.bytes),
                .benefit = MarginalBenefitOf(dataset, reads),
                .read = coordination::RateOf(reads),
                .measured = coordination::IsMeasured(reads),
                .node_selector = dataset.spec.placement.node_selector,
                .max_nodes = dataset.spec.placement.max_nodes,
                .on_disk = dataset.spec.on_disk,
                .wants_gpus = dataset.wants_gpus};
  if (const auto readers = signs.readers.find(name); readers != signs.readers.end())
    demand.readers = readers->second;
  if (const auto holders = signs.holders.find(name); holders != signs.holders.end())
    demand.holders = holders->second;
  AddWarmed(observed, demand);
  return demand;
}

coordination::RevisionSpec RevisionOf(const std::string& name, const api::CachePlanSpec& content) {
  return {.name = name,
          .retention = content.retention,
          .objective = content.objective,
          .jobs = api::RecipesOf(content.jobs)};
}

// What nodes are to follow, and to try beside it. What has no content left is not asked for.
void Assign(const ClusterDataset& dataset, const coordination::RolloutOrders& orders,
            coordination::DatasetSpec& spec) {
  const auto update = dataset.revisions.find(orders.update);
  if (!orders.update.empty() && update != dataset.revisions.end()) {
    spec.update = {.revision = RevisionOf(orders.update, update->second), .nodes = orders.nodes};
  }
  for (const auto& [id, revision] : orders.trials) {
    const auto content = dataset.revisions.find(revision);
    if (content != dataset.revisions.end())
      spec.trials.push_back({.id = id, .revision = RevisionOf(revision, content->second)});
  }
  if (!dataset.question || !dataset.question->error.empty()) return;
  spec.trials.push_back({.id = PresentTrial(*dataset.question, dataset.revision),
                         .revision = RevisionOf(dataset.revision, dataset.plan),
                         .on_request = true});
  const std::string& asked = dataset.question->trial;
  spec.trials.push_back(
      {.id = asked,
       .revision = RevisionOf(asked.substr(0, asked.find('@')), dataset.question->spec),
       .on_request = true});
}

coordination::DatasetSpec SpecOf(const ClusterDataset& dataset, const Placed& placed) {
  coordination::DatasetSpec spec{
      .name = dataset.QualifiedName(),
      .manifest_digest = dataset.status.manifest_digest,
      .key = dataset::KeyOf(dataset.QualifiedName(), dataset.status.manifest_digest),
      .samples = dataset.status.samples,
      .bytes = dataset.status.bytes,
      .capacity = placed.granted - placed.on_disk,
      .retention = dataset.plan.retention,
      .objective = dataset.plan.objective,
      .namespaces = {dataset.ns},
      .placed = placed.members,
      .shares = placed.shares,
      .revision = dataset.revision,
      .jobs = api::RecipesOf(dataset.plan.jobs),
      .limits = {.requests = static_cast<double>(dataset.spec.limits.requests_per_second),
                 .bytes = static_cast<double>(dataset.spec.limits.bytes_per_second)}};
  if (placed.on_disk > 0) spec.with_disk = dataset.spec.capacity.Of(dataset.status.bytes);
  for (const std::string& ns : dataset.spec.access) {
    if (ns != dataset.ns) spec.namespaces.push_back(ns);
  }
  return spec;
}

// What members have said of the Dataset, by name; those that have said nothing are left out.
std::vector<coordination::RolloutNode> SayingNodes(const coordination::DatasetStatus& dataset) {
  std::vector<coordination::RolloutNode> nodes;
  nodes.reserve(dataset.nodes.size());
  for (const coordination::NodeShare& share : dataset.nodes)
    nodes.push_back({.name = share.name,
                     .revision = share.revision,
                     .planned = share.derived >= dataset.planned,
                     .trials = share.trials});
  std::ranges::sort(nodes, {}, &coordination::RolloutNode::name);
  return nodes;
}

// The members on which it is placed, by name.
std::vector<coordination::RolloutNode> PlacedNodes(const ClusterObserved& observed,
                                                   const coordination::DatasetStatus& dataset) {
  const std::vector<coordination::RolloutNode> saying = SayingNodes(dataset);
  const std::set<std::string> placed = PlacedOn(observed, dataset.name);
  std::vector<coordination::RolloutNode> nodes;
  for (const coordination::MemberStatus& member : observed.status->members) {
    if (!placed.contains(member.name)) continue;
    const auto said =
        std::ranges::lower_bound(saying, member.name, {}, &coordination::RolloutNode::name);
    const bool has_said = said != saying.end() && said->name == member.name;
    nodes.push_back(has_said ? *said : coordination::RolloutNode{.name = member.name});
    nodes.back().member = member.id;
    nodes.back().incarnation = member.incarnation;
    nodes.back().planned = has_said && said->planned;
  }
  std::ranges::sort(nodes, {}, &coordination::RolloutNode::name);
  return nodes;
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
    demands.push_back(DemandOf(*dataset, signs, observed));
  const std::vector<Placed> placed = Place(MachinesOf(observed), demands);
  for (std::size_t i = 0; i < indexed.size(); ++i) {
    plan.specs.push_back(SpecOf(*indexed[i], placed[i]));
    if (!placed[i].HasAll()) plan.specs.back().note = placed[i].why;
    Assign(*indexed[i], OrdersOf(indexed[i]->rollout, observed, placed[i].dataset),
           plan.specs.back());
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
    saved += coordination::SavedBy(MarginalBenefitOf(dataset, ReadsOf(observed, name)),
                                   placed->second.granted);
  }
  return saved;
}

ClusterSigns SignsOf(const coordination::ClusterStatus& status) {
  ClusterSigns signs;
  for (const coordination::MemberStatus& member : status.members)
    signs.members.emplace(member.name, std::pair(member.capacity, member.disk));
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
                 .cached_samples = known->sum.samples,
                 .placed = GrantsOf(observed, dataset),
                 .hit_ratio = known->ratios.observed,
                 .predicted_hit_ratio = known->ratios.predicted,
                 .nodes_that_differ = known->nodes_that_differ,
                 .store = known->store};
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
  PlanView view{.digest = known->plan_digest, .nodes_that_differ = known->nodes_that_differ};
  if (known->total_samples > 0) view.mean_sample_bytes = known->total_bytes / known->total_samples;
  view.nodes = PlacedNodes(observed, *known);
  view.nodes_desired = view.nodes.size();
  // Who has derived a plan goes on by it while the next one is made.
  view.nodes_active = static_cast<std::uint64_t>(
      std::ranges::count_if(view.nodes, [](const coordination::RolloutNode& node) {
        return node.planned || !node.revision.empty();
      }));
  ReadManifests(*observed.status, dataset, view);
  std::vector<coordination::StreamStatus> of_earlier;
  for (const coordination::DatasetStatus& one : observed.status->retiring) {
    if (one.name == dataset)
      of_earlier.insert(of_earlier.end(), one.streams.begin(), one.streams.end());
  }
  view.jobs = PlanJobsOf(known->streams, of_earlier);
  return view;
}

coordination::RolloutOrders OrdersOf(const coordination::RolloutState& rollout,
                                     const ClusterObserved& observed, const std::string& dataset) {
  if (rollout.current.empty()) return {};
  const coordination::DatasetStatus* const known = StatusOf(observed, dataset);
  coordination::RolloutInputs inputs;
  // Also where it is not placed yet: a successor is told who follows what before it has placed
  // anything.
  if (known != nullptr) inputs.nodes = SayingNodes(*known);
  return coordination::OrdersOf(rollout, inputs);
}

}  // namespace optcache::reconcile
