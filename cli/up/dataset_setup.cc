// Turns each Dataset of the configuration into a manifest on disk and a spec for the coordinator.
//
// A manifest stands beside a text with all that it depends on (SourceText). If that text is the
// same, the manifest is used again without looking at the source. Both files are written
// atomically, the text last: an interrupted run indexes again and never takes a half manifest.

#include "cli/up/dataset_setup.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/files.h"
#include "cli/manifest/manifest_report.h"
#include "cli/terminal/progress_line.h"
#include "coordination/status.h"
#include "dataset/manifest.h"
#include "sampler/recipe_text.h"
#include "storage/index.h"
#include "storage/open_store.h"

namespace optcache::cli {
namespace {

constexpr Duration kIndexLimit = std::chrono::hours(6);

// The file of an HTTP source that lists it; empty: it has none.
std::string ListingOf(const api::DatasetSpec& dataset) {
  const auto* const http = std::get_if<api::HttpSource>(&dataset.source);
  return http == nullptr ? "" : http->listing;
}

// What a manifest depends on besides the source's content; kept beside it.
std::string SourceText(const api::DatasetSpec& dataset, const std::string& store) {
  std::string text = "source: " + store + "\n";
  if (const std::string listing = ListingOf(dataset); !listing.empty())
    text += "listing: " + listing + "\n";
  if (dataset.format != dataset::Format::kFiles)
    text += fmt::format("format: {}\n", api::NameIn(api::kFormats, dataset.format));
  if (dataset.order) text += fmt::format("order: {}\n", api::NameIn(api::kOrders, *dataset.order));
  for (const std::string& pattern : dataset.include)
    text += "include: " + pattern + "\n";
  if (dataset.verify == api::Verify::kDigest) text += "verify: Digest\n";
  return text;
}

// `/data` stays; a folder given relative to here becomes absolute, since sidecars may run
// elsewhere.
std::string StoreAddress(const api::DatasetSpec& dataset) {
  const std::string address = api::AddressOf(dataset.source);
  return std::holds_alternative<api::FileSource>(dataset.source)
             ? std::filesystem::absolute(address).lexically_normal().string()
             : address;
}

Duration PatienceOf(const api::DatasetSpec& dataset) {
  return dataset.patience_seconds > 0 ? std::chrono::seconds(dataset.patience_seconds)
                                      : dataset::kPatience;
}

std::string KeysFolderOf(const config::Dataset& dataset, const SetupOptions& options) {
  const auto folder = options.keys_folders.find(dataset.QualifiedName());
  return folder == options.keys_folders.end() ? "" : folder->second;
}

Result<std::string> Index(const config::Dataset& dataset, const std::string& address,
                          const SetupOptions& options) {
  const api::DatasetSpec& spec = dataset.spec;
  const auto& [requests, bytes] = spec.limits;
  storage::OpenOptions open{
      .ca_file = options.ca_file,
      .keys_folder = KeysFolderOf(dataset, options),
      .retry = {.patience = PatienceOf(spec), .seed = static_cast<std::uint64_t>(::getpid())},
      .rates = {.requests_per_second = static_cast<double>(requests),
                .bytes_per_second = static_cast<double>(bytes)}};
  if (const std::string listing = ListingOf(spec); !listing.empty()) open.listing = listing;
  ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectStore> store,
                   storage::OpenStore(address, open));
  options.say(fmt::format("{}: indexing {}", dataset.QualifiedName(), address));
  ProgressLine line;
  const auto progress = [&](storage::IndexProgress p) {
    line.Show(storage::StepName(p.step), p.done, p.all);
  };
  const storage::IndexOptions index{.format = spec.format,
                                    .order = spec.order,
                                    .include = spec.include,
                                    .digests = spec.verify == api::Verify::kDigest,
                                    .deadline = Deadline::After(SystemClock(), kIndexLimit),
                                    .progress = progress};
  ASSIGN_OR_RETURN(const storage::IndexReport report, storage::BuildManifest(*store, index));
  for (const std::string& note : BuildNotes(report))
    options.say(fmt::format("{}: {}", dataset.QualifiedName(), note));
  return std::string(report.manifest.bytes());
}

// The manifest's bytes: those of the file if it was made from the same source.
Result<std::string> FindOrIndex(const config::Dataset& dataset, const std::string& address,
                                const std::string& file, const SetupOptions& options) {
  const std::string source_file = file + ".source";
  const std::string source = SourceText(dataset.spec, address);
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

// The order of the plan's first job over this many samples; empty: it names none.
std::string OrderOf(const api::CachePlanSpec& plan, std::uint64_t samples) {
  if (plan.jobs.empty()) return "";
  const api::PlanJobSpec& job = plan.jobs.front();
  const bool distributed = job.sampler == api::JobSampler::kTorchDistributed;
  // What does not concern the kind keeps its default.
  return sampler::FormatRecipe({.kind = distributed   ? sampler::Kind::kTorchDistributed
                                        : job.shuffle ? sampler::Kind::kTorchRandom
                                                      : sampler::Kind::kSequential,
                                .size = samples,
                                .seed = distributed || job.shuffle ? job.seed : 0,
                                .world = distributed ? static_cast<std::uint32_t>(job.world) : 1,
                                .shuffle = !distributed || job.shuffle,
                                .drop_last = distributed && job.drop_last});
}

std::vector<std::string> NotesOn(const api::DatasetSpec& dataset, bool has_disk) {
  std::vector<std::string> notes;
  if (dataset.on_disk && !has_disk) {
    notes.emplace_back(
        "tier Disk: no disk is given (--disk, --disk-capacity); memory alone is used");
  }
  if (dataset.placement != api::Placement{}) {
    notes.emplace_back("placement has no meaning on one machine");
  }
  if (dataset.index_interval_seconds > 0) {
    notes.emplace_back(
        "index.interval has no meaning on one machine: --reindex looks for what has changed");
  }
  return notes;
}

// Bytes where a share was meant, as in `capacity: 30`, keep nothing: refused.
Status CheckCapacity(const api::Capacity& capacity, const coordination::DatasetSpec& spec) {
  if (capacity.percent > 0 || spec.samples == 0) return OkStatus();
  const ByteCount mean = spec.bytes / spec.samples;
  if (capacity.bytes >= mean) return OkStatus();
  const std::string meant =
      capacity.bytes > 0 && capacity.bytes <= 100 ? fmt::format("{}%, or ", capacity.bytes) : "";
  return {
      Code::kInvalidArgument,
      fmt::format("dataset {}: spec.cache.capacity is {}, less than one sample ({} in the mean): "
                  "did you mean {}a number of bytes with its unit, as 20Gi?",
                  spec.name, FormatBytes(capacity.bytes), FormatBytes(mean), meant)};
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
  const api::DatasetSpec& spec = dataset.spec;
  ReadyDataset ready{.manifest_file = fmt::format("{}/manifests/{}.{}.manifest", options.state_dir,
                                                  dataset.name_space, dataset.name),
                     .store = StoreAddress(spec),
                     .keys_folder = KeysFolderOf(dataset, options),
                     .limits = spec.limits,
                     .patience = PatienceOf(spec),
                     .price = spec.price,
                     .notes = NotesOn(spec, options.has_disk)};
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
                .capacity = spec.capacity.Asked(manifest->total_bytes()),
                .retention = plan.spec.retention,
                .objective = plan.spec.objective,
                .limits = {.requests = static_cast<double>(spec.limits.requests_per_second),
                           .bytes = static_cast<double>(spec.limits.bytes_per_second)}};
  for (SampleId id = 0; id < manifest->samples(); ++id)
    ready.largest = std::max(ready.largest, manifest->Size(id));
  ready.order = OrderOf(plan.spec, ready.spec.samples);
  RETURN_IF_ERROR(CheckCapacity(spec.capacity, ready.spec));
  if (spec.on_disk) ready.spec.with_disk = std::min(ready.spec.capacity, ready.spec.bytes);
  ready.guaranteed = spec.GuaranteedOf(manifest->total_bytes());
  if (auto note = coordination::OversizeNote(ready.spec.capacity, ready.spec.bytes)) {
    ready.notes.push_back(*std::move(note));
  }
  return ready;
}

}  // namespace optcache::cli
