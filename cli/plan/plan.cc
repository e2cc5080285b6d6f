// Has the subcommands that read and write plan files of OPT4TorchDataset.
//
// All figures come from replays: ReportOn replays the file's table in both runtimes, and
// CompareReport also the tables that OPT4TorchDataset and an optimal planner would make for the
// same reads. DecidePlan makes a table for a room. Where sizes count, the most samples that the
// replay held at a time become the file's maxsize.

#include "cli/plan/plan.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/files.h"
#include "cli/order/npy.h"
#include "cli/plan/plan_in_cluster.h"
#include "cli/plan/plan_report.h"
#include "cli/plan/plan_request.h"
#include "cli/plan/plan_suggest.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/print.h"
#include "cli/terminal/progress_line.h"
#include "cli/terminal/whole_number.h"
#include "opt4torch/decision_table.h"
#include "opt4torch/plan_file.h"
#include "sampler/recipe.h"
#include "sampler/recipe_text.h"

namespace optcache::cli {
namespace {

using plan::Opt4TorchRuntime;
using plan::PlanFile;
using plan::TableFigures;

constexpr const char* kPlanMore =
    R"(OPT4TorchDataset caches samples inside a training process. A plan file, made before the run, decides which ones.
generate, import, export, stats and show read and write plan files. A cluster needs no plan file: its nodes plan for
themselves. show, diff and predict tell what they plan for a CachePlan. suggest finds the least capacity for a goal.

Examples:
  Write the file that OPT4TorchDataset's own command writes, with an optimal table in it:
    optcache plan generate --dataset-size 10000 --total-iter 100000 --maxsize 3000 --output plan.safetensors
  Compare a file of OPT4TorchDataset with the optimum:
    optcache plan import published.safetensors
  Decide the same reads optimally, for OPT4TorchDataset to carry out:
    optcache plan export published.safetensors --output better.safetensors
  Show what a cluster plans, and predict what it would plan:
    kubectl optcache plan show imagenet
    kubectl optcache plan predict -f plan.yaml
  Find the least capacity with which the jobs that read now wait 2 % of the time at most:
    optcache plan suggest images --until waiting=2%)";

constexpr const char* kGenerateMore =
    R"(--dataset-size, --total-iter, --seed, --no-replacement, --maxsize and --output are those of OPT4TorchDataset's
command: one RandomSampler with that seed draws all reads. With --epochs the run is that many passes of a sampler that
optcache knows (`optcache order --help`). Use --rank if each training process caches for itself.

Examples:
  Plan as OPT4TorchDataset does:
    optcache plan generate --dataset-size 10000 --total-iter 100000 --maxsize 3000 --output plan.safetensors
  Plan rank 3 of 8 by DistributedSampler, 10 epochs, with a cache of 5 % of the dataset:
    optcache plan generate --dataset-size 10000 --epochs 10 --world 8 --rank 3 --capacity 5% --output rank3.safetensors
  Plan with the sizes of your samples, in 2 GiB:
    optcache plan generate --recipe "torch-distributed size=14059 seed=1" --epochs 5 --manifest images.manifest
      --capacity 2Gi --output plan.safetensors)";

constexpr const char* kImportMore =
    R"(Replays the file's reads as both runtimes of OPT4TorchDataset do: through the file's table, through the table that
OPT4TorchDataset plans for these reads, and through an optimal one. Names the sampler that makes the order, if optcache
knows it. `optcache order --recipe` then prints the order, and jobs that read in it need no file.

Examples:
  optcache plan import published.safetensors
  optcache plan import published.safetensors --write-order reads.txt
  optcache simulate --nodes 1 --trace reads.txt)";

constexpr const char* kExportMore =
    R"(Takes the reads of a plan file and decides them by Belady's MIN with bypass. OPT4TorchDataset's table can hold these
decisions in full: both of its runtimes then hit as often as any cache of that many samples can. The order and the seed
stay. maxsize stays unless you set --maxsize or --capacity.

Examples:
  optcache plan export published.safetensors --output better.safetensors
  Make room for 40,000 samples:
    optcache plan export published.safetensors --maxsize 40000 --output larger.safetensors)";

constexpr const char* kShowMore =
    R"(A name means a file if a file of that name exists, or if it ends in .safetensors. Otherwise it means a CachePlan, and
cacheplan/NAME always does. The other options apply to CachePlans only.

Examples:
  optcache plan show plan.safetensors
  kubectl optcache plan show imagenet -n vision
  kubectl optcache plan show cacheplan/imagenet -o json)";

struct WrittenPlanFlags {
  PlanRoomFlags room;
  std::string output;
};

struct GeneratePlanFlags : WrittenPlanFlags {
  PlanOrderFlags order;
  std::string planner = "optimal";
};

struct ImportPlanFlags {
  std::string file;
  std::string order_file;
};

struct ExportPlanFlags : WrittenPlanFlags {
  std::string file;
};

struct ShowPlanFlags : PlanInClusterFlags {
  std::string plan;
};

struct PlanStatsFlags {
  std::string file;
  std::string output = "table";
};

// Steps over all reads, with a line that says how far they are.
std::vector<plan::Opt4TorchStep> PlanOptimally(const plan::Future& future, const plan::Room& room) {
  ProgressLine line("reads");
  return plan::PlanDecisions(future, room, [&](std::uint64_t done) {
    line.Show("planning", done, future.samples.size());
  });
}

Result<TableFigures> ReplayPlan(const PlanFile& plan, Opt4TorchRuntime runtime,
                                const plan::Sizes& sizes) {
  ProgressLine line("reads");
  return plan::ReplayTable(plan, runtime, sizes, [&](std::uint64_t done) {
    line.Show("replaying", done, plan.reads.size());
  });
}

Result<TableFigures> ReplayPlan(const PlanFile& plan, Opt4TorchRuntime runtime) {
  return ReplayPlan(plan, runtime, plan::Sizes::Equal(plan.dataset_size, 1));
}

Result<PlanFile> ReadPlanFile(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file, plan::kMaxPlanFileBytes));
  Result<PlanFile> plan = plan::ParsePlanFile(AsBytes(bytes));
  if (!plan) return Error(std::move(plan).error().WithContext(file));
  return plan;
}

std::vector<plan::Opt4TorchStep> AsPublished(const plan::Future& future, std::uint32_t samples,
                                             std::uint64_t maxsize) {
  if (maxsize == 0) return std::vector<plan::Opt4TorchStep>(future.samples.size());
  return plan::PlanAsOpt4Torch(future, samples, static_cast<std::size_t>(maxsize));
}

Result<PlanReport> ReportOn(const std::string& file, const PlanFile& plan) {
  PlanReport report{
      .file = file, .maxsize = plan.maxsize, .dataset_size = plan.dataset_size, .seed = plan.seed};
  std::vector<bool> seen(plan.dataset_size);
  for (const SampleId sample : plan.reads)
    seen[sample] = true;
  report.samples_read = static_cast<std::uint64_t>(std::ranges::count(seen, true));
  if (const auto recipe = RecipeOfPlan(plan)) report.recipe = sampler::FormatRecipe(*recipe);
  auto one_process = ReplayPlan(plan, Opt4TorchRuntime::kOneProcess);
  if (!one_process) return Error(std::move(one_process).error().WithContext(file));
  report.one_process = *one_process;
  ASSIGN_OR_RETURN(report.shared, ReplayPlan(plan, Opt4TorchRuntime::kShared));
  return report;
}

// Plans the reads again, in both ways.
Result<PlanReport> CompareReport(const std::string& file, const PlanFile& plan) {
  ASSIGN_OR_RETURN(PlanReport report, ReportOn(file, plan));
  const plan::Future future = plan::FutureOf(plan.reads, plan.dataset_size);
  PlanFile other = plan;
  report.comparison = PlanReport::Comparison{};
  PlanReport::Comparison& comparison = *report.comparison;
  other.steps = AsPublished(future, plan.dataset_size, plan.maxsize);
  for (std::size_t row = plan.steps.size(); row-- > 0;) {
    if (plan.steps[row] == other.steps[row]) continue;
    ++comparison.unlike_rows;
    comparison.first_unlike = row;
  }
  ASSIGN_OR_RETURN(comparison.published, ReplayPlan(other, Opt4TorchRuntime::kOneProcess));
  ASSIGN_OR_RETURN(comparison.published_shared, ReplayPlan(other, Opt4TorchRuntime::kShared));
  other.steps = PlanOptimally(
      future, {.sizes = plan::Sizes::Equal(plan.dataset_size, 1), .capacity = plan.maxsize});
  ASSIGN_OR_RETURN(comparison.optimal, ReplayPlan(other, Opt4TorchRuntime::kOneProcess));
  return report;
}

double ByteHitRatio(const PlanFile& plan, const plan::Sizes& sizes, const TableFigures& figures) {
  ByteCount read = 0;
  for (const SampleId sample : plan.reads)
    read += sizes[sample];
  return read == 0 ? 0 : static_cast<double>(figures.hit_bytes) / static_cast<double>(read);
}

// `plan` with a table for the room, and the maxsize that it takes.
Status DecidePlan(PlanFile& plan, const plan::Room& room, std::string_view planner) {
  const plan::Future future = plan::FutureOf(plan.reads, plan.dataset_size);
  const bool slots = room.sizes.equal() && room.sizes.largest() == 1;
  plan.maxsize = room.capacity;
  if (planner == "opt4torch") {
    if (!slots) {
      return {Code::kInvalidArgument,
              "--planner opt4torch counts samples, not bytes: leave --manifest out"};
    }
    plan.steps = AsPublished(future, plan.dataset_size, plan.maxsize);
    return OkStatus();
  }
  plan.steps = PlanOptimally(future, room);
  if (slots) return OkStatus();
  plan.maxsize = plan.reads.size();
  ASSIGN_OR_RETURN(const TableFigures figures,
                   ReplayPlan(plan, Opt4TorchRuntime::kOneProcess, room.sizes));
  plan.maxsize = figures.most_held;
  return Print(fmt::format("{} of {} at most; hit ratio of bytes {:.4f}\n",
                           FormatBytes(figures.most_bytes), FormatBytes(room.capacity),
                           ByteHitRatio(plan, room.sizes, figures)));
}

Status GeneratePlan(const GeneratePlanFlags& flags) {
  ASSIGN_OR_RETURN(PlannedOrder order, MakePlannedOrder(flags.order));
  ASSIGN_OR_RETURN(const auto room, MakePlannedRoom(flags.room, order.dataset_size));
  if (!room) {
    return {Code::kInvalidArgument,
            "the size of the cache is missing: set --maxsize N (samples) or --capacity (30%, or "
            "2Gi with --manifest)"};
  }
  PlanFile plan{.dataset_size = order.dataset_size,
                .seed = order.seed,
                .reads = std::move(order.reads),
                .steps = {}};
  RETURN_IF_ERROR(DecidePlan(plan, *room, flags.planner));
  ASSIGN_OR_RETURN(const PlanReport report, ReportOn(flags.output, plan));
  RETURN_IF_ERROR(WriteFileAtomically(flags.output, plan::FormatPlanFile(plan)));
  return Print(PlanAsText(report));
}

Status WritePlanOrder(const std::string& file, const std::vector<SampleId>& reads) {
  if (file.ends_with(".npy")) return WriteNpy(file, reads);
  fmt::memory_buffer text;
  for (const SampleId sample : reads)
    fmt::format_to(std::back_inserter(text), "{}\n", sample);
  return WriteFileAtomically(file, {text.data(), text.size()});
}

Status ImportPlan(const ImportPlanFlags& flags) {
  ASSIGN_OR_RETURN(const PlanFile plan, ReadPlanFile(flags.file));
  ASSIGN_OR_RETURN(const PlanReport report, CompareReport(flags.file, plan));
  if (!flags.order_file.empty()) RETURN_IF_ERROR(WritePlanOrder(flags.order_file, plan.reads));
  return Print(ComparisonAsText(report));
}

Status ExportPlan(const ExportPlanFlags& flags) {
  ASSIGN_OR_RETURN(PlanFile plan, ReadPlanFile(flags.file));
  ASSIGN_OR_RETURN(const PlanReport before, ReportOn(flags.file, plan));
  ASSIGN_OR_RETURN(const auto room, MakePlannedRoom(flags.room, plan.dataset_size));
  const plan::Room same{.sizes = plan::Sizes::Equal(plan.dataset_size, 1),
                        .capacity = plan.maxsize};
  RETURN_IF_ERROR(DecidePlan(plan, room.value_or(same), "optimal"));
  ASSIGN_OR_RETURN(const PlanReport after, ReportOn(flags.output, plan));
  RETURN_IF_ERROR(WriteFileAtomically(flags.output, plan::FormatPlanFile(plan)));
  return Print(PlanAsText(before) + PlanAsText(after));
}

Status ShowPlan(const ShowPlanFlags& flags) {
  if (MeansCachePlan(flags.plan)) {
    Status shown = ShowCachePlan(flags.plan, flags);
    const bool may_mean_file = !flags.plan.contains('/');
    return shown.ok() || !may_mean_file
               ? shown
               : std::move(shown).WithContext("no such file: " + flags.plan + "; as a CachePlan");
  }
  ASSIGN_OR_RETURN(const PlanFile plan, ReadPlanFile(flags.plan));
  ASSIGN_OR_RETURN(const PlanReport report, ReportOn(flags.plan, plan));
  return Print(PlanAsText(report));
}

Status PlanStats(const PlanStatsFlags& flags) {
  ASSIGN_OR_RETURN(const PlanFile plan, ReadPlanFile(flags.file));
  ASSIGN_OR_RETURN(const PlanReport report, CompareReport(flags.file, plan));
  return Print(flags.output == "json" ? PlanAsJson(report) : PlanAsTable(report));
}

void AddPlanFile(CLI::App& command, std::string& file) {
  command.add_option("file", file, "The plan file (.safetensors)")->required();
}

// Of a plan that is written: the room that it is for, and the file.
void AddWrittenPlan(CLI::App& command, WrittenPlanFlags& flags) {
  command.add_option("--maxsize", flags.room.maxsize, "The number of samples to keep at most")
      ->check(WholeNumber<std::uint64_t>(1, plan::kMaxPlanSamples));
  command
      .add_option("--capacity", flags.room.capacity,
                  "Instead of --maxsize: a share of the dataset (30%), or bytes (2Gi) with "
                  "--manifest")
      ->type_name("SIZE");
  command
      .add_option("--manifest", flags.room.manifest,
                  "Manifest with the samples' sizes (`optcache manifest build` makes one); "
                  "--capacity is then in bytes")
      ->type_name("FILE");
  command.add_option("--output", flags.output, "The plan file to write")
      ->required()
      ->type_name("FILE");
}

void AddGeneratePlan(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<GeneratePlanFlags>();
  PlanOrderFlags& order = flags->order;
  CLI::App* command = parent.add_subcommand("generate", "Plan a run and write its file");
  command->footer(kGenerateMore);
  command->add_option("--dataset-size", order.dataset_size, "Samples in the dataset")
      ->check(WholeNumber<std::uint64_t>(1, plan::kMaxPlanSamples));
  command->add_option("--total-iter", order.total_iter, "Reads that one RandomSampler draws")
      ->check(WholeNumber<std::uint64_t>(1, plan::kMaxPlanReads));
  command->add_option("--seed", order.seed, "The sampler's seed")
      ->check(WholeNumber<std::int64_t>())
      ->capture_default_str();
  command->add_flag_callback(
      "--no-replacement", [&order] { order.replacement = false; },
      "Draw without replacement: RandomSampler(replacement=False)");
  command
      ->add_option("--epochs", order.epochs,
                   "Instead of --total-iter: the number of passes of --sampler")
      ->check(WholeNumber<std::uint32_t>(1, plan::kMaxPlanReads));
  command->add_option("--sampler", order.sampler,
                      "torch-distributed (default), torch-random or sequential");
  command->add_option("--world", order.world, "Ranks that share the order")
      ->check(WholeNumber<std::uint32_t>(1, sampler::kMaxWorld))
      ->capture_default_str();
  command->add_option("--rank", order.rank, "Plan the reads of this rank alone")
      ->check(WholeNumber<Rank>());
  command->add_option(
      "--recipe", order.recipe,
      "The whole order except --epochs and --rank, in the format of docs/formats/recipe.md");
  command
      ->add_option("--planner", flags->planner,
                   "optimal, or opt4torch: the table that OPT4TorchDataset would write")
      ->check(CLI::IsMember({"optimal", "opt4torch"}))
      ->capture_default_str();
  AddWrittenPlan(*command, *flags);
  Choose(*command, flags, GeneratePlan, chosen);
}

void AddImportPlan(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<ImportPlanFlags>();
  CLI::App* command =
      parent.add_subcommand("import", "Replay a plan file and compare it with the optimum");
  command->footer(kImportMore);
  AddPlanFile(*command, flags->file);
  command
      ->add_option("--write-order", flags->order_file,
                   "Write the file's reads, too: one id per line, or for numpy.load if the name "
                   "ends in .npy")
      ->type_name("FILE");
  Choose(*command, flags, ImportPlan, chosen);
}

void AddExportPlan(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<ExportPlanFlags>();
  CLI::App* command =
      parent.add_subcommand("export", "Decide a plan file's reads optimally, for OPT4TorchDataset");
  command->footer(kExportMore);
  AddPlanFile(*command, flags->file);
  AddWrittenPlan(*command, *flags);
  Choose(*command, flags, ExportPlan, chosen);
}

void AddShowPlan(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<ShowPlanFlags>();
  CLI::App* command =
      parent.add_subcommand("show", "Print a plan file, or a CachePlan of a cluster, at a glance");
  command->footer(kShowMore);
  command->add_option("plan", flags->plan, "A plan file (.safetensors), cacheplan/NAME or NAME")
      ->required();
  AddPlanInClusterFlags(*command, *flags);
  Choose(*command, flags, ShowPlan, chosen);
}

void AddPlanStats(CLI::App& parent, Action& chosen) {
  const auto flags = std::make_shared<PlanStatsFlags>();
  CLI::App* command = parent.add_subcommand("stats", "Print a plan file's figures for scripts");
  command->footer(
      "oneProcess and shared: the file in each runtime. published and optimal: its reads planned "
      "again.\n\nExample:\n  optcache plan stats plan.safetensors --output json");
  AddPlanFile(*command, flags->file);
  command->add_option("--output", flags->output, "table or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "json"}));
  Choose(*command, flags, PlanStats, chosen);
}

}  // namespace

void AddPlanCommand(CLI::App& app, Action& chosen) {
  CLI::App* command = app.add_subcommand(
      "plan", "Make and read plan files of OPT4TorchDataset; show what a cluster plans");
  command->footer(kPlanMore);
  command->require_subcommand(1);
  AddGeneratePlan(*command, chosen);
  AddImportPlan(*command, chosen);
  AddExportPlan(*command, chosen);
  AddShowPlan(*command, chosen);
  AddPlanStats(*command, chosen);
  AddPlanDiff(*command, chosen);
  AddPlanPredict(*command, chosen);
  AddPlanSuggest(*command, chosen);
}

}  // namespace optcache::cli
