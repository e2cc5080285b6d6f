// Has the subcommands build, show and verify: flags in, one call of lib/storage or lib/dataset, a
// report out.
//
// A manifest is written atomically and only when the whole source has been listed. The line of
// progress ends before anything is printed.

#include "cli/manifest/manifest.h"

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
#include "cli/manifest/manifest_report.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/print.h"
#include "cli/terminal/progress_line.h"
#include "dataset/format.h"
#include "dataset/order.h"
#include "storage/index.h"
#include "storage/open_store.h"
#include "storage/verify.h"

namespace optcache::cli {
namespace {

using dataset::Manifest;

constexpr const char* kBuildMore =
    R"(A source is a folder (a path or file:///path), a bucket (s3://bucket/prefix) or a web server
(http://host/prefix, https://...). For a bucket, AWS_ACCESS_KEY_ID and the other variables of AWS's tools
set keys, region and endpoint. docs/formats/address.md lists the options of an address. A web server needs a
text file that lists its objects: a line has a path, optionally a tab and the size in bytes, and optionally a
tab and the ETag. `find . -type f > index.txt` in its folder makes such a file.

With --format tar the objects are tar archives. A sample is a group of files in them whose names are equal up to
the first dot, as the webdataset package groups them. With tar-files each file in an archive is a sample.
With --format ranges a sample is a range of an object. The source has a list of the samples, ranges.csv, with a line
OBJECT,OFFSET,LENGTH or OBJECT,OFFSET,LENGTH,NAME for each sample (docs/formats/ranges.md). With npy the objects
are arrays of numpy, as numpy.save writes them, and each row is a sample. With megatron the objects are NAME.idx
and NAME.bin of Megatron-LM, and each sequence is a sample, as megatron-core's IndexedDataset numbers them.

--order decides how samples are numbered:
  image-folder  by class folders, as torchvision.datasets.ImageFolder(root) numbers them
  path          by sorted paths, without classes
  list          in the order of the source, without classes
The default is image-folder if there are images in folders, else path. Groups of tar archives have the order of
the archives, by path or as listed. Ranges have the order of their list.

With --verify Digest, indexing reads all bytes once and stores the SHA-256 of each sample. Sidecars and
`optcache manifest verify --bytes` compare what they read with it. With Checksum, other bytes under the same
size, ETag and time are not noticed.

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
  for (const dataset::OrderNames& names : dataset::kOrders) {
    if (name == names.name) return names.order;
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
  ASSIGN_OR_RETURN(const dataset::Format format, dataset::ParseFormat(flags.format));
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
  command
      .add_option("--source", flags.address,
                  "Address of the objects: a folder, a bucket or a web server")
      ->required()
      ->type_name("ADDRESS");
  command
      .add_option("--listing", flags.options.listing,
                  "File on the web server that lists the objects")
      ->default_str(storage::kListingFile)
      ->type_name("NAME");
  command
      .add_option("--ca-file", flags.options.ca_file,
                  "Certificates to trust instead of the system's, for https")
      ->type_name("FILE");
  command
      .add_option("--keys", flags.options.keys_folder,
                  "Folder with the keys of the web server or bucket, one file for each key")
      ->type_name("FOLDER");
  command
      .add_option("--parallel", flags.options.concurrent_reads_max,
                  "Number of requests that run at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command.add_option("--timeout", flags.timeout_s, "Give up after this many seconds")
      ->capture_default_str()
      ->check(CLI::Range(1, 7 * 24 * 3600));
}

void AddBuild(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<BuildFlags>();
  CLI::App* command = parent.add_subcommand("build", "Index a source and write its manifest");
  command->footer(kBuildMore);
  AddSourceOptions(*command, flags->source);
  command
      ->add_option("--include", flags->include,
                   "Pattern of the objects to index, for example '**/*.jpg' (** stands for any "
                   "folders); may be given several times. Default: images with the order "
                   "image-folder, else all objects; for the formats of archives **/*.tar; for "
                   "ranges ranges.csv; for npy **/*.npy; for megatron **/*.idx")
      ->type_name("GLOB");
  command
      ->add_option("--format", flags->format,
                   "What a sample is: files: an object; tar: a group of files in an archive; "
                   "tar-files: a file in an archive; ranges: a range of an object, from a list; "
                   "npy: a row of an array; megatron: a sequence of Megatron-LM")
      ->capture_default_str();
  command->add_option("--order", flags->order, "Order of the samples: image-folder, path or list");
  command
      ->add_option("--verify", flags->verify,
                   "How reads are verified: Checksum, or Digest, which reads all bytes once and "
                   "stores the SHA-256 of each sample")
      ->capture_default_str();
  command->add_option("-o", flags->output, "Manifest to write")->required()->type_name("FILE");
  Choose(*command, flags, Build, chosen);
}

void AddShow(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = parent.add_subcommand("show", "Print the contents of a manifest");
  command->add_option("file", flags->file, "Manifest to read")->required();
  command->add_option("--output", flags->output, "Format of the output: text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--paths", flags->paths,
                    "Print the paths of the samples instead, in the order of their numbers");
  Choose(*command, flags, Show, chosen);
}

void AddVerify(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = parent.add_subcommand(
      "verify", "List the objects that changed or disappeared since the manifest was made");
  command->add_option("file", flags->file, "Manifest to read")->required();
  AddSourceOptions(*command, flags->source);
  command->add_option("--sample", flags->samples_max, "Check only this many samples, evenly spread")
      ->type_name("N");
  command->add_flag("--bytes", flags->bytes,
                    "Read the samples, too, and compare them with the digests of the manifest, "
                    "which must have been built with --verify Digest");
  Choose(*command, flags, Verify, chosen);
}

}  // namespace

void AddManifestCommand(CLI::App& app, Action& chosen) {
  CLI::App* command =
      app.add_subcommand("manifest", "Index a dataset, and show or verify its manifest");
  command->require_subcommand(1);
  AddBuild(*command, chosen);
  AddShow(*command, chosen);
  AddVerify(*command, chosen);
}

}  // namespace optcache::cli
