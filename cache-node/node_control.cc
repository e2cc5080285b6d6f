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

constexpr ByteCount kPlainBodyMax = 4_GiB;  // a manifest

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
                           const auto dataset = host_->Find(key);
                           return dataset ? dataset->name() : std::string();
                         },
                     .on_ready = [this] { loop_.Post(guard_.Wrap([this] { control_->Start(); })); },
                     .on_change =
                         [this] {
                           if (control_) control_->ReportSoon();
                         },
                     .on_used = [this](const std::string& dataset) { host_->OnUsed(dataset); }}));
  visitors_ = std::make_unique<NodeVisitors>(loop_, clock_, cluster_->authorizer(),
                                             cluster_->refusal_counters(), streams_);
  return OkStatus();
}

void Node::ConnectToCoordinator() {
  // The coordinator may be away when this node comes back.
  const auto saved = cluster_ ? cluster_->state_dir().LoadState() : std::nullopt;
  if (!cluster_) {
    plain_http_ = net::MakeHttpClient(
        loop_,
        {.max_body_bytes = kPlainBodyMax, .unix_socket = net::UnixPathOf(options_.coordinator)});
    plain_control_ = std::make_unique<ControlHttp>(*plain_http_, options_.coordinator);
  }
  control_ = std::make_unique<ControlClient>(
      loop_, cluster_ ? cluster_->control() : *plain_control_,
      ControlClient::Options{.node = options_.name,
                             .version = saved ? saved->version : coordination::Version{},
                             .seed = options_.incarnation},
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
  MakeHost();
  MakeRouter();
  if (saved) {
    Log(LogLevel::kInfo, "going on with the state of the run before",
        {{"version", coordination::FormatVersion(saved->version)}});
    Apply(*saved);
  }
  if (!cluster_) control_->Start();
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
  if (listed) host_->OnState();
}

// False while the state does not list this node: not yet, or not any more. What it holds stays for
// when it is listed again.
bool Node::ApplyMembers(const coordination::DesiredState& state) {
  const auto listed = std::ranges::find(state.members, options_.name, &coordination::Member::name);
  const wire::MemberId self = listed == state.members.end() ? 0 : listed->id;
  if (self != 0 && self != self_) {
    self_ = self;
    host_->BeginAs(self);
  }
  links_->SetMembers(self, state.members);
  return self != 0;
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

coordination::Report Node::MakeReport() {
  coordination::Report report{.node = options_.name,
                              .incarnation = options_.incarnation,
                              .address = options_.advertise,
                              .metrics = metrics_url_,
                              .capacity = options_.memory,
                              .disk = disk_ ? disk_->offered() : 0,
                              .leaving = host_->ending(),
                              .member = self_,
                              .applied = state_.version,
                              .streams = streams_.Report(),
                              .savings = savings_.Batch(),
                              .demands = rates_.Report()};
  host_->Report(report, stores_);
  if (cluster_) {
    report.manifest_url = cluster_->manifests().url();
    report.manifests = cluster_->manifests().Digests();
  }
  return report;
}

}  // namespace optcache::node
