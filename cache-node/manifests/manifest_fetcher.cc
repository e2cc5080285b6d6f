// Fetches each wanted manifest from one holder after the other until it is stored.
//
//   Ask ─► OnHead (room, file) ─► OnPiece ... ─► OnEnd (checked) ─► OnStored
//    ▲        │ failed              │ failed       │ failed
//    └────────┴──── AskAgain: the next holder, after a backoff
//
// Two are busy at a time; the others are marked as waiting, and AskNext begins one when a place is
// free. A manifest that an upload has stored meanwhile leaves its turn to the next. Pieces are
// written on the thread `pieces`, and the next is read from the connection when one is written, so
// memory holds a piece of each. `worker` checks the whole file. A piece that was written for a
// fetch that has begun again is ignored: the writer is another by then.

#include "cache-node/manifests/manifest_fetcher.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace optcache::node {
namespace {

constexpr net::HttpStreamLimits kLimits = {.response_deadline = std::chrono::seconds(30),
                                           .idle_deadline = std::chrono::minutes(1)};
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
    return AskNext();
  }
  const auto busy = std::ranges::count_if(wanted_, [](const auto& one) { return one.second.busy; });
  wanted.waiting = std::cmp_greater_equal(busy, kAtOnce);
  if (wanted.waiting) return;
  const std::vector<std::string> holders = parts_.holders(digest);
  if (holders.empty()) return AskAgain(digest, "no node reports that it holds it");
  wanted.url = holders[wanted.turn++ % holders.size()];
  wanted.busy = true;
  wanted.stream = parts_.http.Stream(
      {.url = fmt::format("{}/v1/manifests/{}", wanted.url, digest)}, kLimits,
      {.on_response = [this, digest](
                          int status,
                          const net::HttpHeaders& headers) { OnHead(digest, status, headers); },
       .on_piece =
           [this, digest](std::string bytes, std::function<void()> go_on) {
             OnPiece(digest, std::move(bytes), std::move(go_on));
           },
       .on_end = [this, digest](const Status& status) { OnEnd(digest, status); }});
}

// Room is taken before the first byte is.
void ManifestFetcher::OnHead(const std::string& digest, int status,
                             const net::HttpHeaders& headers) {
  const std::string& url = wanted_.at(digest).url;
  if (status != 200) return AskAgain(digest, fmt::format("{} answered {}", url, status));
  const Status begun = Begin(digest, headers);
  if (begun.ok()) return;
  if (begun.code() == Code::kResourceExhausted &&
      !std::exchange(wanted_.at(digest).no_room, true)) {
    Log(LogLevel::kWarning, "no room for a manifest that this node shall hold",
        {{"digest", digest}, {"why", begun.message()}});
  }
  AskAgain(digest, begun.message());
}

Status ManifestFetcher::Begin(const std::string& digest, const net::HttpHeaders& headers) {
  const std::optional<ByteCount> length = net::ContentLength(headers);
  if (!length) return {Code::kInvalidArgument, "the manifest comes without a length"};
  RETURN_IF_ERROR(parts_.store.Reserve(digest, *length, ""));
  auto writer = ManifestWriter::Open(parts_.store.FileOf(digest), *length);
  if (!writer) {
    parts_.store.Settle(digest, false);
    return writer.error();
  }
  wanted_.at(digest).writer = *std::move(writer);
  return OkStatus();
}

// The next comes when this one is written.
void ManifestFetcher::OnPiece(const std::string& digest, std::string bytes,
                              std::function<void()> go_on) {
  const auto writer = wanted_.at(digest).writer;
  const auto written = std::make_shared<Status>();
  const Status begun = parts_.pieces.Run(
      [writer, written, bytes = std::move(bytes)] { *written = writer->Write(bytes); },
      guard_.Wrap([this, digest, writer, written, go_on = std::move(go_on)] {
        if (!wanted_.contains(digest) || wanted_.at(digest).writer != writer) return;
        if (!written->ok()) return AskAgain(digest, written->message());
        go_on();
      }));
  if (!begun.ok()) AskAgain(digest, begun.message());
}

void ManifestFetcher::OnEnd(const std::string& digest, const Status& status) {
  Wanted& wanted = wanted_.at(digest);
  if (!status.ok()) return AskAgain(digest, status.message());
  const auto kept = std::make_shared<Status>();
  const Status begun =
      parts_.worker.Run([kept, writer = wanted.writer, digest] { *kept = writer->Keep(digest, 0); },
                        guard_.Wrap([this, kept, digest] { OnStored(digest, *kept); }));
  if (!begun.ok()) AskAgain(digest, begun.message());
}

void ManifestFetcher::OnStored(const std::string& digest, const Status& status) {
  if (!status.ok()) return AskAgain(digest, status.message());
  parts_.store.Settle(digest, true);
  ++fetched_;
  const auto wanted = wanted_.extract(digest);
  Log(LogLevel::kInfo, "manifest fetched", {{"digest", digest}, {"from", wanted.mapped().url}});
  AskNext();
  parts_.on_stored(digest);
}

void ManifestFetcher::AskAgain(const std::string& digest, const std::string& why) {
  Wanted& wanted = wanted_.at(digest);
  ++failed_;
  wanted.busy = false;
  wanted.stream.reset();
  if (std::exchange(wanted.writer, nullptr) != nullptr) parts_.store.Settle(digest, false);
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
