#include "cache-node/manifest_fetcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace optcache::node {
namespace {

constexpr auto kTimeout = std::chrono::minutes(2);  // for a whole manifest
constexpr BackoffOptions kFetchBackoff = {.first = std::chrono::milliseconds(200),
                                          .limit = std::chrono::seconds(10)};

}  // namespace

ManifestFetcher::Wanted::Wanted(std::uint64_t seed) : backoff(kFetchBackoff, seed), turn(seed) {}

void ManifestFetcher::Want(const std::string& digest) {
  if (parts_.store.Has(digest) || wanted_.contains(digest)) return;
  // Nodes that want it at the same time begin at different holders.
  wanted_.emplace(digest, seed_ + wanted_.size());
  Ask(digest);
}

void ManifestFetcher::WantOnly(const std::set<std::string>& digests) {
  std::erase_if(wanted_,
                [&](const auto& one) { return !one.second.busy && !digests.contains(one.first); });
}

// By value: the timer that calls it may go meanwhile.
void ManifestFetcher::Ask(std::string digest) {  // NOLINT(performance-unnecessary-value-param)
  Wanted& wanted = wanted_.at(digest);
  if (parts_.store.Has(digest)) {
    wanted_.erase(digest);
    return;
  }
  const auto busy = std::ranges::count_if(wanted_, [](const auto& one) { return one.second.busy; });
  wanted.waiting = std::cmp_greater_equal(busy, kAtOnce);
  if (wanted.waiting) return;
  const std::vector<std::string> holders = parts_.holders(digest);
  if (holders.empty()) return AskAgain(digest, "no node reports that it holds it");
  const std::string& url = holders[wanted.turn++ % holders.size()];
  wanted.busy = true;
  parts_.http.Send({.url = fmt::format("{}/v1/manifests/{}", url, digest)}, kTimeout,
                   [this, alive = alive_, digest, url](Result<net::HttpResponse> response) {
                     if (*alive) OnAnswer(digest, url, std::move(response));
                   });
}

void ManifestFetcher::OnAnswer(const std::string& digest, const std::string& url,
                               Result<net::HttpResponse> response) {
  if (!response) return AskAgain(digest, response.error().message());
  if (response->status != 200) {
    return AskAgain(digest, fmt::format("{} answered {}", url, response->status));
  }
  Store(digest, url, std::move(response->body));
}

void ManifestFetcher::Store(const std::string& digest, const std::string& url, std::string bytes) {
  const Status reserved = parts_.store.Reserve(digest, bytes.size(), "");
  if (!reserved.ok()) return AskAgain(digest, reserved.message());
  const auto written = std::make_shared<Status>();
  const Status begun = parts_.worker.Run(
      [written, digest, file = parts_.store.FileOf(digest), bytes = std::move(bytes)]() mutable {
        *written = WriteManifest(file, digest, std::move(bytes));
      },
      [this, alive = alive_, written, digest, url] {
        if (*alive) OnStored(digest, url, *written);
      });
  if (!begun.ok()) OnStored(digest, url, begun);
}

void ManifestFetcher::OnStored(const std::string& digest, const std::string& url,
                               const Status& status) {
  parts_.store.Settle(digest, status.ok());
  if (!status.ok()) return AskAgain(digest, status.message());
  ++fetched_;
  wanted_.erase(digest);
  Log(LogLevel::kInfo, "manifest fetched", {{"digest", digest}, {"from", url}});
  AskNext();
  parts_.on_stored(digest);
}

void ManifestFetcher::AskAgain(const std::string& digest, const std::string& why) {
  Wanted& wanted = wanted_.at(digest);
  ++failed_;
  wanted.busy = false;
  Log(LogLevel::kDebug, "manifest not fetched, trying again", {{"digest", digest}, {"why", why}});
  wanted.timer = loop_.After(wanted.backoff.Next(), [this, digest] { Ask(digest); });
  AskNext();
}

void ManifestFetcher::AskNext() {
  const auto next =
      std::ranges::find_if(wanted_, [](const auto& one) { return one.second.waiting; });
  if (next != wanted_.end()) Ask(next->first);
}

void ManifestFetcher::VisitCounters(const CounterVisitor& visitor) const {
  const auto count = [&](const char* result, std::uint64_t number) {
    visitor(MetricKind::kCounter, "optcache_manifest_fetches_total", {{"result", result}},
            static_cast<double>(number));
  };
  count("stored", fetched_);
  count("failed", failed_);
  visitor(MetricKind::kGauge, "optcache_manifests_awaited", {},
          static_cast<double>(wanted_.size()));
}

}  // namespace optcache::node
