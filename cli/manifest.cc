#include "cli/manifest.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/files.h"
#include "base/utf8.h"
#include "cli/choose.h"
#include "cli/manifest_report.h"
#include "cli/print.h"
#include "cli/progress_line.h"
#include "storage/index.h"
#include "storage/open_store.h"
#include "storage/verify.h"

namespace optcache::cli {
namespace {

using dataset::Manifest;

constexpr const char* kBuildMore =
    R"(A source is a folder (a path or file:///path), a bucket (s3://bucket/prefix) or a web server
(http://host/prefix, https://...). Of a bucket, AWS_ACCESS_KEY_ID and the other variables of AWS's tools
say keys, region and endpoint; docs/formats/address.md has the options that an address may carry. A web
server says what it holds by a text file, one path a line, optionally with a tab and the size in bytes
and a tab and the ETag: `find . -type f > index.txt` in its folder makes one.

With --format tar the objects are tar archives, and samples are the groups of files in them that have one
name up to the first dot, as the webdataset package groups them; with tar-files each file in them is a sample.
With --format ranges a sample is a range of an object. The source holds a list of them, ranges.csv, with a line
OBJECT,OFFSET,LENGTH or OBJECT,OFFSET,LENGTH,NAME for each sample (docs/formats/ranges.md). With npy the objects
are arrays of numpy, as numpy.save writes them, and each row is a sample. With megatron they are NAME.idx and
NAME.bin of Megatron-LM, and each sequence is a sample, as megatron-core's IndexedDataset numbers them.

Samples get their numbers by
  image-folder  class folders, as torchvision.datasets.ImageFolder(root) numbers them
  path          sorted paths, no classes
  list          the source's own order, no classes
Without --order: image-folder if there are images in folders, else path. Groups of tar archives have the order
of the archives, by path or as listed, and ranges have that of their list.

With --verify Digest all bytes are read once, and the SHA-256 of each sample is noted. Reads are compared
with it, by sidecars and by `optcache manifest verify --bytes`. Without, other bytes under the same size,
ETag and time are not noticed.

Examples:
  optcache manifest build --source /data/imagenet/train -o imagenet.manifest
  optcache manifest build --source /data/imagenet/train --verify Digest -o imagenet.manifest
  optcache manifest build --source 's3://images/train?region=eu-west-1' -o train.manifest
  optcache manifest build --source http://files:8080/speech --include '**/*.flac' -o speech.manifest)";

struct SourceFlags {
  std::string address;
  storage::OpenOptions options{.retry = {.seed = static_cast<std::uint64_t>(::getpid())}};
  std::uint64_t timeout_s = 4ULL * 3600;

  Deadline deadline() const {
    return Deadline::After(SystemClock(), std::chrono::seconds(timeout_s));
  }
};

struct BuildFlags {
  SourceFlags source;
  std::vector<std::string> include;
  std::string order;
  std::string format = "files";
  std::string verify = "Checksum";
  std::string output;
};

struct ShowFlags {
  std::string file;
  std::string output = "text";
  bool paths = false;
};

struct VerifyFlags {
  SourceFlags source;
  std::string file;
  std::uint32_t samples_max = 0;
  bool bytes = false;
};

Result<std::optional<dataset::Order>> ParseOrder(const std::string& name) {
  if (name.empty()) return std::nullopt;
  for (const dataset::Order order :
       {dataset::Order::kImageFolder, dataset::Order::kPath, dataset::Order::kList}) {
    if (name == dataset::OrderName(order)) return order;
  }
  return Error(Code::kInvalidArgument, "order " + name + ": there are image-folder, path and list");
}

Result<Manifest> ReadManifest(const std::string& file) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(file, dataset::kManifestBytesMax));
  Result<Manifest> manifest = Manifest::Parse(std::move(bytes));
  if (!manifest) return Error(std::move(manifest).error().WithContext(file));
  return manifest;
}

Status Build(const BuildFlags& flags) {
  ASSIGN_OR_RETURN(const std::optional<dataset::Order> order, ParseOrder(flags.order));
  ASSIGN_OR_RETURN(const storage::IndexFormat format, storage::ParseFormat(flags.format));
  ASSIGN_OR_RETURN(const bool digests, storage::ParseVerify(flags.verify));
  ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectStore> store,
                   storage::OpenStore(flags.source.address, flags.source.options));
  std::optional<ProgressLine> line(std::in_place);
  const auto progress = [&](storage::IndexProgress p) {
    line->Show(storage::StepName(p.step), p.done, p.all);
  };
  ASSIGN_OR_RETURN(const storage::IndexReport report,
                   storage::BuildManifest(
                       *store, {.format = format,
                                .order = order,
                                .include = flags.include,
                                .digests = digests,
                                .concurrent_stats_max = flags.source.options.concurrent_reads_max,
                                .concurrent_reads_max = flags.source.options.concurrent_reads_max,
                                .deadline = flags.source.deadline(),
                                .progress = progress}));
  line.reset();
  RETURN_IF_ERROR(WriteFileAtomically(flags.output, report.manifest.bytes()));
  for (const std::string& note : BuildNotes(report))
    fmt::print(stderr, "{}\n", Visible(note));
  return Print(ManifestAsText(flags.output, report.manifest));
}

Status Show(const ShowFlags& flags) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(flags.file));
  if (flags.paths) {
    for (SampleId sample = 0; sample < manifest.samples(); ++sample) {
      RETURN_IF_ERROR(Print(manifest.Path(sample) + "\n"));
    }
    return OkStatus();
  }
  return Print(flags.output == "json" ? ManifestAsJson(manifest)
                                      : ManifestAsText(flags.file, manifest));
}

Status Verify(const VerifyFlags& flags) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(flags.file));
  ASSIGN_OR_RETURN(const std::unique_ptr<storage::ObjectStore> store,
                   storage::OpenStore(flags.source.address, flags.source.options));
  std::optional<ProgressLine> line(std::in_place);
  Result<storage::VerifyReport> report = storage::VerifyManifest(
      *store, manifest,
      {.samples_max = flags.samples_max,
       .bytes = flags.bytes,
       .concurrent_stats_max = flags.source.options.concurrent_reads_max,
       .concurrent_reads_max = flags.source.options.concurrent_reads_max,
       .deadline = flags.source.deadline(),
       .progress = [&](std::string_view step, std::uint64_t done, std::uint64_t all) {
         line->Show(step, done, all);
       }});
  line.reset();
  if (!report) return std::move(report).error().WithContext(flags.file);
  RETURN_IF_ERROR(Print(VerifyAsText(*report)));
  if (report->clean()) return OkStatus();
  return {Code::kConflict, flags.file + " is not what " + store->name() +
                               " holds now: restore the objects, or build the manifest again"};
}

void AddSourceOptions(CLI::App& command, SourceFlags& flags) {
  command.add_option("--source", flags.address, "Where the objects are")
      ->required()
      ->type_name("ADDRESS");
  command
      .add_option("--listing", flags.options.listing, "The file by which a web server lists them")
      ->capture_default_str()
      ->type_name("NAME");
  command
      .add_option("--ca-file", flags.options.ca_file,
                  "Certificates to trust instead of the system's, for https")
      ->type_name("FILE");
  command
      .add_option("--keys", flags.options.keys_folder,
                  "Folder with the keys of a web server or a bucket, a file for each")
      ->type_name("FOLDER");
  command.add_option("--parallel", flags.options.concurrent_reads_max, "Requests at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command.add_option("--timeout", flags.timeout_s, "Seconds after which it gives up")
      ->capture_default_str()
      ->check(CLI::Range(1, 7 * 24 * 3600));
}

void AddBuild(CLI::App& parent, Verb& chosen) {
  const auto flags = std::make_shared<BuildFlags>();
  CLI::App* command = parent.add_subcommand("build", "Index a source and write its manifest");
  command->footer(kBuildMore);
  AddSourceOptions(*command, flags->source);
  command
      ->add_option("--include", flags->include,
                   "Which objects are samples, archives of them or lists of ranges, for example "
                   "'**/*.jpg' (** is any folders); may be given more than once. Without: images, "
                   "or all objects; of archives **/*.tar; of lists ranges.csv; of arrays **/*.npy; "
                   "of Megatron-LM **/*.idx")
      ->type_name("GLOB");
  command
      ->add_option(
          "--format", flags->format,
          "What the objects are: files, tar (archives of samples of several files), "
          "tar-files (archives of samples of one file), ranges (samples are ranges of "
          "objects, by a list), npy (arrays, whose rows are samples) or megatron (tokens of "
          "Megatron-LM, whose sequences are samples)")
      ->capture_default_str();
  command->add_option("--order", flags->order, "image-folder, path or list");
  command
      ->add_option("--verify", flags->verify,
                   "Checksum, or Digest: read all bytes once and note the SHA-256 of each sample")
      ->capture_default_str();
  command->add_option("-o", flags->output, "The manifest to write")->required()->type_name("FILE");
  Choose(*command, flags, Build, chosen);
}

void AddShow(CLI::App& parent, Verb& chosen) {
  const auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = parent.add_subcommand("show", "Print what a manifest says");
  command->add_option("file", flags->file, "The manifest")->required();
  command->add_option("--output", flags->output, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--paths", flags->paths,
                    "Print the objects' paths instead, in the order of the sample numbers");
  Choose(*command, flags, Show, chosen);
}

void AddVerify(CLI::App& parent, Verb& chosen) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = parent.add_subcommand(
      "verify", "Say which objects changed or went since the manifest was made");
  command->add_option("file", flags->file, "The manifest")->required();
  AddSourceOptions(*command, flags->source);
  command
      ->add_option("--sample", flags->samples_max,
                   "How many samples to look at, evenly spread, instead of all")
      ->type_name("N");
  command->add_flag("--bytes", flags->bytes,
                    "Read the samples, too, and compare their contents with the manifest's "
                    "digests, which it has if it was built with --verify Digest");
  Choose(*command, flags, Verify, chosen);
}

}  // namespace

void AddManifestCommand(CLI::App& app, Verb& chosen) {
  CLI::App* command =
      app.add_subcommand("manifest", "Index a dataset; show and verify what it consists of");
  command->require_subcommand(1);
  AddBuild(*command, chosen);
  AddShow(*command, chosen);
  AddVerify(*command, chosen);
}

}  // namespace optcache::cli
