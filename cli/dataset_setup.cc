#include "cli/dataset_setup.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "cli/manifest_report.h"
#include "cli/progress_line.h"
#include "coordination/status.h"
#include "dataset/manifest.h"
#include "storage/index.h"
#include "storage/open_store.h"

namespace optcache::cli {
namespace {

constexpr Duration kIndexLimit = std::chrono::hours(6);

coordination::Retention ToCoordination(config::Retention retention) {
  switch (retention) {
    case config::Retention::kOptimal:
      return coordination::Retention::kOptimal;
    case config::Retention::kPin:
      return coordination::Retention::kPin;
    case config::Retention::kLru:
      return coordination::Retention::kLru;
    case config::Retention::kNone:
      return coordination::Retention::kNone;
  }
  return coordination::Retention::kOptimal;
}

std::optional<dataset::Order> ToDataset(std::optional<config::Order> order) {
  if (!order) return std::nullopt;
  switch (*order) {
    case config::Order::kImageFolder:
      return dataset::Order::kImageFolder;
    case config::Order::kPath:
      return dataset::Order::kPath;
    case config::Order::kList:
      return dataset::Order::kList;
  }
  return std::nullopt;
}

// What a manifest depends on besides the source's content; kept beside it.
std::string SourceText(const config::Dataset& dataset, const std::string& store) {
  std::string text = "source: " + store + "\n";
  if (dataset.http) text += "listing: " + dataset.http->listing + "\n";
  if (dataset.order) text += fmt::format("order: {}\n", static_cast<int>(*dataset.order));
  for (const std::string& pattern : dataset.include)
    text += "include: " + pattern + "\n";
  return text;
}

// `/data` stays; a folder given relative to here becomes absolute, since sidecars may run
// elsewhere.
std::string StoreAddress(const config::Dataset& dataset) {
  return dataset.file ? std::filesystem::absolute(dataset.Address()).lexically_normal().string()
                      : dataset.Address();
}

Result<std::string> Index(const config::Dataset& dataset, const std::string& address,
                          const SetupOptions& options) {
  storage::OpenOptions open{.ca_file = options.ca_file};
  if (dataset.http) open.listing = dataset.http->listing;
  ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectStore> store,
                   storage::OpenStore(address, open));
  options.say(fmt::format("{}: indexing {}", dataset.QualifiedName(), address));
  ProgressLine line;
  const auto progress = [&](storage::IndexProgress p) {
    const bool listing = p.step == storage::IndexProgress::Step::kListing;
    line.Show(listing ? "listing" : "asking", p.done, p.all);
  };
  const storage::IndexOptions index{.order = ToDataset(dataset.order),
                                    .include = dataset.include,
                                    .deadline = Deadline::After(SystemClock(), kIndexLimit),
                                    .progress = progress};
  ASSIGN_OR_RETURN(const storage::IndexReport report, storage::BuildManifest(*store, index));
  for (const std::string& note : BuildNotes(report, dataset.order.has_value()))
    options.say(fmt::format("{}: {}", dataset.QualifiedName(), note));
  return std::string(report.manifest.bytes());
}

// The manifest's bytes: those of the file if it was made from the same source.
Result<std::string> FindOrIndex(const config::Dataset& dataset, const std::string& address,
                                const std::string& file, const SetupOptions& options) {
  const std::string source_file = file + ".source";
  const std::string source = SourceText(dataset, address);
  const Result<std::string> known = ReadFile(source_file, 1_MiB);
  if (!options.reindex && known && *known == source) {
    Result<std::string> bytes = ReadFile(file, dataset::kManifestBytesMax);
    if (bytes) {
      options.say(dataset.QualifiedName() +
                  ": indexed earlier; --reindex looks for what has changed since");
      return bytes;
    }
  }
  ASSIGN_OR_RETURN(std::string bytes, Index(dataset, address, options));
  RETURN_IF_ERROR(WriteFileAtomically(file, bytes));
  RETURN_IF_ERROR(WriteFileAtomically(source_file, source));
  return bytes;
}

std::vector<std::string> NotesOn(const config::Dataset& dataset) {
  std::vector<std::string> notes;
  if (std::ranges::find(dataset.tiers, config::Tier::kDisk) != dataset.tiers.end()) {
    notes.emplace_back("tier Disk is not available in this version; memory alone is used");
  }
  if (dataset.verify == config::Verify::kDigest) {
    notes.emplace_back("verify Digest is not available in this version; Checksum is used");
  }
  if (dataset.placement != config::Placement{}) {
    notes.emplace_back("placement has no meaning on one machine");
  }
  return notes;
}

}  // namespace

Result<config::Configuration> ReadConfiguration(const std::vector<std::string>& files) {
  config::Configuration whole;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(file, config::kMaxFileBytes));
    ASSIGN_OR_RETURN(config::Configuration part, config::ParseConfiguration(text, file));
    RETURN_IF_ERROR(config::Merge(std::move(part), whole).WithContext(file));
  }
  RETURN_IF_ERROR(config::CheckReferences(whole));
  if (whole.datasets.empty()) {
    return Error(Code::kInvalidArgument,
                 "no Dataset in the files given: there is nothing to cache");
  }
  return whole;
}

Result<ReadyDataset> SetUpDataset(const config::Dataset& dataset, const config::CachePlan& plan,
                                  const SetupOptions& options) {
  const std::string name = dataset.QualifiedName();
  ReadyDataset ready{.manifest_file = fmt::format("{}/manifests/{}.{}.manifest", options.state_dir,
                                                  dataset.name_space, dataset.name),
                     .store = StoreAddress(dataset),
                     .notes = NotesOn(dataset)};
  Result<std::string> bytes = FindOrIndex(dataset, ready.store, ready.manifest_file, options);
  if (!bytes) return Error(std::move(bytes).error().WithContext("dataset " + name));
  ready.manifest = std::make_shared<const std::string>(*bytes);
  Result<dataset::Manifest> manifest = dataset::Manifest::Parse(*std::move(bytes));
  if (!manifest) return Error(std::move(manifest).error().WithContext(ready.manifest_file));
  ready.spec = {.name = name,
                .manifest_digest = dataset::ToHex(manifest->digest()),
                .key = dataset::KeyOf(name, dataset::ToHex(manifest->digest())),
                .samples = manifest->samples(),
                .bytes = manifest->total_bytes(),
                .capacity = dataset.capacity.Of(manifest->total_bytes()),
                .retention = ToCoordination(plan.retention),
                .objective = plan.objective == config::Objective::kBytes
                                 ? coordination::Objective::kBytes
                                 : coordination::Objective::kRequests};
  if (dataset.min_capacity) {
    const ByteCount floor = dataset.min_capacity->Of(manifest->total_bytes());
    ready.floor = std::min({floor, ready.spec.capacity, ready.spec.bytes});
  }
  if (auto note = coordination::OversizeNote(ready.spec.capacity, ready.spec.bytes)) {
    ready.notes.push_back(*std::move(note));
  }
  return ready;
}

}  // namespace optcache::cli
