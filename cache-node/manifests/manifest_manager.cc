// Joins the manifest store, the fetcher and the server, and hands mapped manifests to the node.
//
// The desired state says which members are to hold a manifest (`manifest_members`), and which have
// it (`manifest_holders`). OnState fetches what this node is to hold, and lets go of what no
// dataset names. Get answers from the store, or waits in `waiting_` until the fetcher or an upload
// has stored the manifest. Files are mapped and checked on a worker thread. If one is damaged it is
// dropped and fetched again.

#include "cache-node/manifests/manifest_manager.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "cache-node/manifests/manifest_file.h"
#include "coordination/desired_state.h"
#include "net/address.h"

namespace optcache::node {
namespace {

constexpr auto kSweepEvery = std::chrono::minutes(1);
constexpr auto kRequestDeadline = std::chrono::minutes(1);
constexpr std::size_t kPiecesMax = 512;  // that wait to be written or read

}  // namespace

Result<std::unique_ptr<ManifestManager>> ManifestManager::Start(net::EventLoop& loop,
                                                                const Clock& clock,
                                                                ManifestManagerOptions options,
                                                                Parts parts, Hooks hooks) {
  ASSIGN_OR_RETURN(ManifestStore store, ManifestStore::Open(options.folder, clock, options.limits));
  const ByteCount manifest_bytes = store.limits().manifest_bytes;
  std::unique_ptr<ManifestManager> keep(
      new ManifestManager(loop, clock, options, std::move(store), parts, std::move(hooks)));
  ManifestServer& manifests = keep->server_;
  net::HttpServerOptions server{
      .label = "manifests",
      .max_body_bytes = manifest_bytes,
      .check_head =
          [&manifests](const net::HttpRequest& head,
                       std::function<void(net::HttpHeadRuling)> decide) {
            manifests.CheckHead(head, std::move(decide));
          },
      .request_deadline = kRequestDeadline,
      .blocking =
          [&pieces = keep->pieces_](std::function<void()> job, std::function<void()> end) {
            return pieces.Run(std::move(job), std::move(end));
          },
      .tls = parts.tls};
  ASSIGN_OR_RETURN(keep->http_, net::ListenHttp(loop, options.listen, std::move(server),
                                                [&manifests](net::HttpRequest request,
                                                             const net::HttpResponder& respond) {
                                                  manifests.Handle(std::move(request), respond);
                                                }));
  keep->url_ = "https://" + net::FormatAddress({.host = options.host, .port = keep->http_->port()});
  keep->store_.KeepNamed(keep->named_);
  keep->sweep_ = net::PeriodicTimer(loop, kSweepEvery,
                                    [self = keep.get()] { self->store_.KeepNamed(self->named_); });
  return keep;
}

ManifestManager::ManifestManager(net::EventLoop& loop, const Clock& clock,
                                 const ManifestManagerOptions& options, ManifestStore store,
                                 Parts parts, Hooks hooks)
    : node_(options.node),
      hooks_(std::move(hooks)),
      store_(std::move(store)),
      fetcher_(loop,
               {.store = store_,
                .worker = worker_,
                .pieces = pieces_,
                .http = parts.http,
                .holders = [this](const std::string& digest) { return HoldersOf(digest); },
                .on_stored = [this](const std::string& digest) { OnStored(digest); }},
               options.seed),
      server_({.loop = loop,
               .store = store_,
               .worker = worker_,
               .tokens = parts.tokens,
               .refusal_counters = parts.refusal_counters,
               .state = [this] { return has_state_ ? &state_ : nullptr; },
               .fetch = [this](const std::string& digest) { fetcher_.Want(digest); },
               .on_used = [this](const std::string& dataset) { hooks_.on_used(dataset); },
               .on_stored = [this](const std::string& digest) { OnStored(digest); }}),
      worker_(loop, clock),
      pieces_(loop, clock, kPiecesMax) {}

void ManifestManager::OnState(const coordination::DesiredState& state,
                              coordination::MemberId self) {
  state_ = state;
  has_state_ = true;
  named_.clear();
  const auto datasets = coordination::AllDatasets(state_);
  for (const auto* dataset : datasets)
    named_.insert(dataset->manifest_digest);
  store_.KeepNamed(named_);
  fetcher_.WantOnly(named_);
  EndWaiting();
  for (const auto* dataset : datasets) {
    if (std::ranges::find(dataset->manifest_members, self) != dataset->manifest_members.end()) {
      fetcher_.Want(dataset->manifest_digest);
    }
  }
}

// For what no dataset names any more.
void ManifestManager::EndWaiting() {
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    const auto next = std::next(one);
    if (!named_.contains(one->first)) {
      const auto ended = waiting_.extract(one);
      for (const Done& done : ended.mapped())
        done(Error(Code::kNotFound, "no dataset has this manifest any more"));
    }
    one = next;
  }
}

std::vector<std::string> ManifestManager::HoldersOf(const std::string& digest) const {
  std::vector<std::string> urls;
  for (const auto* dataset : coordination::AllDatasets(state_)) {
    if (dataset->manifest_digest != digest) continue;
    for (const coordination::MemberId holder : dataset->manifest_holders) {
      const auto member = std::ranges::find(state_.members, holder, &coordination::Member::id);
      if (member == state_.members.end() || member->manifest_url.empty()) continue;
      if (member->name != node_) urls.push_back(member->manifest_url);
    }
  }
  return urls;
}

void ManifestManager::Get(const std::string& digest, Done done) {
  if (store_.Has(digest)) return Read(digest, std::move(done));
  waiting_[digest].push_back(std::move(done));
  fetcher_.Want(digest);
}

void ManifestManager::OnStored(const std::string& digest) {
  if (const auto waiting = waiting_.extract(digest)) {
    for (Done& done : waiting.mapped())
      Read(digest, std::move(done));
  }
  store_.KeepNamed(named_);
  hooks_.on_change();
}

void ManifestManager::Read(const std::string& digest, Done done) {
  const auto bytes = std::make_shared<Result<SharedBytes>>(Error(Code::kInternal, "not read"));
  const auto shared_done = std::make_shared<Done>(std::move(done));
  const Status begun = worker_.Run(
      [bytes, digest, file = store_.FileOf(digest)] { *bytes = MapManifest(file, digest); },
      [this, bytes, digest, shared_done] {
        if (*bytes) return (*shared_done)(std::move(*bytes));
        Log(LogLevel::kError, "a manifest on the state volume is damaged, fetching it again",
            {{"digest", digest}, {"why", bytes->error().message()}});
        store_.Drop(digest);
        Get(digest, std::move(*shared_done));
      });
  if (!begun.ok()) (*shared_done)(Error(begun));
}

void ManifestManager::VisitCounters(const CounterVisitor& visitor) const {
  store_.VisitCounters(visitor);
  fetcher_.VisitCounters(visitor);
  http_->VisitCounters(visitor);
}

}  // namespace optcache::node
