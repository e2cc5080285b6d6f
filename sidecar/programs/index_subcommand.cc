// Runs the steps of an index Job one after the other, on the program's own thread.
//
// MakeManifest lists the source and reads what the format needs. Upload turns an event loop of its
// own until a node has taken the manifest. One deadline bounds both. The termination message has
// the manifest's digest and size, or the step that failed and why: by the step, the operator tells
// the source's faults from those of the nodes.

#include "sidecar/programs/index_subcommand.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "dataset/format.h"
#include "dataset/order.h"
#include "net/connection.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "net/tls_files.h"
#include "sidecar/manifests/manifest_upload.h"
#include "sidecar/manifests/served_dataset.h"
#include "sidecar/ports/retry_seed.h"
#include "sidecar/ports/stream_name.h"
#include "sidecar/programs/termination.h"
#include "storage/index.h"

namespace optcache::sidecar {
namespace {

constexpr auto kTellEvery = std::chrono::seconds(10);
// What changed is told if it is known by then; the manifest counts without it.
constexpr auto kManifestBeforeWithin = std::chrono::minutes(1);

Result<std::optional<dataset::Order>> ParseOrder(const std::string& name) {
  if (name.empty()) return std::nullopt;
  for (const dataset::OrderNames& names : dataset::kOrders) {
    if (name == names.in_resources) return names.order;
  }
  return Error(Code::kInvalidArgument,
               "--order " + name + ": there are ImageFolder, Path and List");
}

// One line now and then, from whatever thread comes by. Thread-safe.
class ProgressLog {
 public:
  void Tell(const storage::IndexProgress& progress) {
    {
      const MutexLock lock(mutex_);
      const MonotonicTime now = SystemClock().Now();
      if (now < next_) return;
      next_ = now + kTellEvery;
    }
    Log(LogLevel::kInfo, storage::StepName(progress.step),
        {{"done", progress.done}, {"all", progress.all}});
  }

 private:
  Mutex mutex_;
  MonotonicTime next_ GUARDED_BY(mutex_) = SystemClock().Now() + kTellEvery;
};

Result<dataset::Manifest> MakeManifest(const IndexFlags& flags, Deadline deadline) {
  ASSIGN_OR_RETURN(const std::optional<dataset::Order> order, ParseOrder(flags.order));
  ASSIGN_OR_RETURN(const dataset::Format format, dataset::ParseFormat(flags.format));
  ASSIGN_OR_RETURN(const bool digests, storage::ParseVerify(flags.verify));
  storage::OpenOptions open = flags.store;
  open.retry.seed = RetrySeedOf(flags.dataset);
  if (!flags.request_rate.empty()) {
    ASSIGN_OR_RETURN(open.rates.requests_per_second, ParseRequestRate(flags.request_rate));
  }
  if (!flags.patience.empty()) {
    ASSIGN_OR_RETURN(open.retry.patience, dataset::ParsePatience(flags.patience));
  }
  if (!flags.byte_rate.empty()) {
    ASSIGN_OR_RETURN(open.rates.bytes_per_second, ParseByteRate(flags.byte_rate));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectStore> store,
                   storage::OpenStore(flags.source, open));
  ProgressLog progress;
  ASSIGN_OR_RETURN(
      storage::IndexReport report,
      storage::BuildManifest(
          *store, {.format = format,
                   .order = order,
                   .include = flags.include,
                   .digests = digests,
                   .concurrent_stats_max = flags.store.concurrent_reads_max,
                   .deadline = deadline,
                   .progress = [&](storage::IndexProgress step) { progress.Tell(step); }}));
  if (!report.unfit_idx_files.empty()) {
    Log(LogLevel::kWarning, "index files do not fit their archives, whose headers were read",
        {{"files", report.unfit_idx_files.size()}, {"first", report.unfit_idx_files.front()}});
  }
  if (!report.unended.empty()) {
    Log(LogLevel::kWarning, "archives have no end mark and may have been cut",
        {{"archives", report.unended.size()}, {"first", report.unended.front()}});
  }
  if (report.missing_count > 0) {
    Log(LogLevel::kWarning, "samples are listed but not there, reading them will fail",
        {{"samples", report.missing_count}, {"first", report.missing.front()}});
  }
  if (report.unreadable_count > 0) {
    Log(LogLevel::kWarning, "samples may not be read by this user, reading them will fail",
        {{"samples", report.unreadable_count},
         {"user", ::geteuid()},
         {"first", report.unreadable.front()}});
  }
  return std::move(report.manifest);
}

Indexed Summary(const dataset::Manifest& manifest) {
  ByteCount largest = 0;
  for (SampleId id = 0; id < manifest.samples(); ++id)
    largest = std::max(largest, manifest.Size(id));
  return {.digest = dataset::ToHex(manifest.digest()),
          .samples = manifest.samples(),
          .bytes = manifest.total_bytes(),
          .largest = largest};
}

// How the nodes are reached that take and have manifests.
class ManifestNodes {
 public:
  explicit ManifestNodes(const IndexFlags& flags) : flags_(flags) {
    net::HttpClientOptions options;
    if (!flags.node_ca.empty()) {
      const auto tls = std::make_shared<net::TlsContext>(net::TlsRole::kClient);
      files_ = std::make_unique<net::TlsFiles>(loop_, net::TlsPaths{.trust = flags.node_ca}, tls);
      options.tls = tls;
      options.server_name = net::kNodeServerName;
    }
    http_ = net::MakeHttpClient(loop_, std::move(options));
  }

  Status Upload(const dataset::Manifest& manifest, Deadline deadline) {
    return UploadManifest(loop_, *http_, Places(),
                          {.dataset = flags_.dataset,
                           .digest = dataset::ToHex(manifest.digest()),
                           .bytes = manifest.shared_bytes(),
                           .timeout = deadline.Remaining(SystemClock().Now())});
  }
  // None: one of the two is too large, or the nodes do not have the manifest of before any more, or
  // do not give it in time.
  std::optional<dataset::ManifestChanges> ChangesSinceBefore(const dataset::Manifest& manifest) {
    std::optional<dataset::ManifestChanges> changes;
    if (!MayCompare(manifest.shared_bytes().size())) return changes;
    const auto take = [&](const UniqueFd& file) -> Status {
      ASSIGN_OR_RETURN(SharedBytes bytes,
                       SharedBytes::Map(file.get(), "the manifest of before", kManifestBytesMax));
      ASSIGN_OR_RETURN(const dataset::Manifest before, dataset::Manifest::Parse(std::move(bytes)));
      if (dataset::ToHex(before.digest()) != flags_.before) {
        return {Code::kConflict, "it is not " + flags_.before};
      }
      changes = dataset::CompareManifests(before, manifest);
      loop_.Stop();
      return OkStatus();
    };
    const ManifestFetch fetch(loop_, *http_, Places(), flags_.dataset,
                              {.take = take,
                               .explain = [](const std::string&) {},
                               .wants =
                                   [this](ByteCount bytes) {
                                     const bool may = MayCompare(bytes);
                                     if (!may) loop_.Stop();
                                     return may;
                                   }});
    const net::Timer deadline = loop_.After(kManifestBeforeWithin, [this] { loop_.Stop(); });
    loop_.Run();
    return changes;
  }

 private:
  bool MayCompare(ByteCount bytes) const {
    if (bytes <= flags_.compared_bytes_max) return true;
    Log(LogLevel::kInfo, "the list is too large to say what changed",
        {{"bytes", bytes}, {"compared up to", flags_.compared_bytes_max}});
    return false;
  }
  ManifestPlaces Places() const {
    return {.urls = flags_.manifests,
            .token_file = flags_.token_file,
            .seed = RetrySeedOf(flags_.dataset)};
  }

  const IndexFlags& flags_;
  net::EventLoop loop_;
  std::unique_ptr<net::TlsFiles> files_;
  std::unique_ptr<net::HttpClient> http_;
};

}  // namespace

Status RunIndex(const IndexFlags& flags) {
  const Deadline deadline = Deadline::After(SystemClock(), std::chrono::seconds(flags.timeout_s));
  const auto fail = [&](IndexStep step, const Status& why) {
    WriteTermination(flags.termination_file, TerminationMessage(step, why));
    return why;
  };
  const Status places =
      CheckPlaces({.urls = flags.manifests, .token_file = flags.token_file}, flags.node_ca);
  if (!places.ok()) return fail(IndexStep::kUpload, places);
  const Result<dataset::Manifest> manifest = MakeManifest(flags, deadline);
  if (!manifest) return fail(IndexStep::kSource, manifest.error());
  Indexed indexed = Summary(*manifest);
  Log(LogLevel::kInfo, "indexed",
      {{"dataset", flags.dataset},
       {"manifest", indexed.digest},
       {"samples", indexed.samples},
       {"bytes", FormatBytes(indexed.bytes)}});
  ManifestNodes nodes(flags);
  const Status uploaded = nodes.Upload(*manifest, deadline);
  if (!uploaded.ok()) return fail(IndexStep::kUpload, uploaded);
  if (!flags.before.empty() && flags.before != indexed.digest)
    indexed.changes = nodes.ChangesSinceBefore(*manifest);
  WriteTermination(flags.termination_file, TerminationMessage(indexed));
  return OkStatus();
}

}  // namespace optcache::sidecar
