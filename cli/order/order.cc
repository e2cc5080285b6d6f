// Makes one order by its recipe and prints it.
//
// The memory that the order takes is compared with what is free before it is made. Ids are written
// through a buffer of 64 KiB, since an order has millions of lines. Everything else is the
// sampler's (lib/sampler).

#include "cli/order/order.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <span>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "cli/order/npy.h"
#include "cli/terminal/whole_number.h"
#include "sampler/order_source.h"
#include "sampler/recipe_text.h"

namespace optcache::cli {
namespace {

constexpr const char* kSummary = "Print the order in which a training job will read its samples";

constexpr const char* kOrderMore =
    R"(The order of a job that shuffles by a seed is fixed before the job starts. This command prints it exactly as
PyTorch makes it, one sample id a line.

Examples:
  Print what rank 3 of 8 reads first in epoch 12, with DistributedSampler(data, seed=0):
    optcache order --size 1281167 --world 8 --rank 3 --epoch 12 | head
  Write the order of all ranks together for numpy.load; rank p modulo 8 reads position p:
    optcache order --size 1281167 --world 8 --epoch 12 --output npy epoch12.npy
  Print the third pass of DataLoader(data, shuffle=True, generator=torch.Generator().manual_seed(7)):
    optcache order --sampler torch-random --size 50000 --seed 7 --epoch 2
  Print the same order by its recipe; recipes know more samplers than these options:
    optcache order --recipe "torch-random size=50000 seed=7" --epoch 2)";

// An id has at most ten digits, then the end of its line.
constexpr std::size_t kMaxLineBytes = 11;
constexpr std::size_t kBufferBytes = 64 << 10U;

Status WriteFailed() {
  return ErrnoStatus(errno, "cannot write the order to standard output");
}

Status PrintLines(std::span<const SampleId> ids, std::FILE* out) {
  std::vector<char> buffer(kBufferBytes);
  char* const begin = buffer.data();
  char* const full = begin + kBufferBytes - kMaxLineBytes;
  char* end = begin;
  for (const SampleId id : ids) {
    end = std::to_chars(end, end + kMaxLineBytes - 1, id).ptr;
    *end++ = '\n';
    if (end < full) continue;
    const auto filled = static_cast<std::size_t>(end - begin);
    if (std::fwrite(begin, 1, filled, out) != filled) return WriteFailed();
    end = begin;
  }
  const auto filled = static_cast<std::size_t>(end - begin);
  if (std::fwrite(begin, 1, filled, out) != filled) return WriteFailed();
  return std::fflush(out) == 0 ? OkStatus() : WriteFailed();
}

Status PrintCrc(std::span<const SampleId> ids, std::FILE* out) {
  if (std::fprintf(out, "%08x\n", sampler::OrderCrc(ids)) < 0) return WriteFailed();
  return std::fflush(out) == 0 ? OkStatus() : WriteFailed();
}

// What the command line says, in the words in which it says it.
struct OrderFlags {
  OrderRequest request;
  std::string sampler = "torch-distributed";
  std::string base_seed = "every-pass";
  std::string recipe;  // instead of all of them
  Rank rank = 0;
  std::vector<std::string> output;  // format and file
};

Result<OrderRequest> RequestOf(const OrderFlags& flags) {
  OrderRequest request = flags.request;
  ASSIGN_OR_RETURN(request.recipe.kind, sampler::ParseKind(flags.sampler));
  ASSIGN_OR_RETURN(request.recipe.base_seed, sampler::ParseBaseSeed(flags.base_seed));
  if (!flags.recipe.empty()) {
    ASSIGN_OR_RETURN(request.recipe, sampler::ParseRecipe(flags.recipe));
  }
  if (!flags.output.empty()) {
    if (flags.output[0] != "npy") {
      return Error(Code::kInvalidArgument,
                   "unknown output format '" + flags.output[0] + "': write --output npy FILE");
    }
    request.npy_file = flags.output[1];
  }
  return request;
}

void AddCommonOptions(CLI::App& command, OrderFlags& flags) {
  sampler::Recipe& recipe = flags.request.recipe;
  CLI::Option_group* const what = command.add_option_group("what");
  what->add_option("--size", recipe.size, "Number of samples in the dataset")
      ->check(WholeNumber<std::uint64_t>());
  what->add_option(
      "--recipe", flags.recipe,
      "Whole recipe of the order, as sidecars log it, in the format of docs/formats/recipe.md");
  what->require_option(1);
  command
      .add_option("--sampler", flags.sampler,
                  "Sampler: torch-distributed, torch-random or sequential")
      ->capture_default_str();
  command.add_option("--seed", recipe.seed, "Seed of the sampler, or of its generator")
      ->check(WholeNumber<std::int64_t>())
      ->capture_default_str();
  command
      .add_option("--epoch", flags.request.epoch,
                  "Argument of set_epoch; for torch-random: number of passes before this one")
      ->check(WholeNumber<std::uint64_t>())
      ->capture_default_str();
  command.add_option("--world", recipe.world, "Number of ranks")
      ->check(WholeNumber<std::uint32_t>())
      ->capture_default_str();
  command.add_option("--rank", flags.rank, "Print the order of this rank alone")
      ->check(WholeNumber<Rank>());
  command
      .add_option("--output", flags.output, "Write the order to a file instead; the format is npy")
      ->type_name("FORMAT FILE")
      ->expected(2);
  command.add_flag(
      "--crc", flags.request.crc,
      "Print only the CRC-32 of the order, as zlib.crc32 computes it over little-endian uint32");
}

void AddSamplerOptions(CLI::App& command, OrderFlags& flags) {
  sampler::Recipe& recipe = flags.request.recipe;
  command.add_flag("--drop-last", recipe.drop_last, "DistributedSampler(drop_last=True)");
  command.add_flag_callback(
      "--no-shuffle", [&recipe] { recipe.shuffle = false; }, "DistributedSampler(shuffle=False)");
  command
      .add_option("--base-seed", flags.base_seed,
                  "For torch-random: when the DataLoader draws from the generator: every-pass, "
                  "first-pass (persistent_workers=True) or never (it has another generator)")
      ->capture_default_str();
  command.add_flag_callback(
      "--no-tail-permutation", [&recipe] { recipe.tail_permutation = false; },
      "For torch-random: the order of torch before 1.12");
  command.add_flag_callback(
      "--legacy-randperm", [&recipe] { recipe.modern_randperm = false; },
      "For 214,748,364 samples and more: the order of torch up to about 2.6");
}

}  // namespace

Status CheckOrderFits(const sampler::Recipe& recipe, const MemoryRoom& room) {
  // The ids, and once more where they are dealt to ranks.
  const ByteCount needed =
      2 * sizeof(SampleId) * std::max(recipe.size, sampler::PassLength(recipe));
  if (needed <= room.bytes) return OkStatus();
  return {Code::kResourceExhausted,
          fmt::format("an order of {} samples takes {} of memory while it is made; {} are left by "
                      "{}",
                      recipe.size, FormatBytes(needed), FormatBytes(room.bytes), room.limited_by)};
}

Status PrintOrder(const OrderRequest& request, std::FILE* out) {
  ASSIGN_OR_RETURN(sampler::OrderSource source, sampler::OrderSource::Make(request.recipe));
  RETURN_IF_ERROR(CheckOrderFits(request.recipe, AvailableMemory()));
  ASSIGN_OR_RETURN(const std::vector<SampleId> ids,
                   request.rank ? source.RankOrder(request.epoch, *request.rank)
                                : source.PassOrder(request.epoch));
  if (!request.npy_file.empty()) RETURN_IF_ERROR(WriteNpy(request.npy_file, ids));
  if (request.crc) return PrintCrc(ids, out);
  return request.npy_file.empty() ? PrintLines(ids, out) : OkStatus();
}

void AddOrderCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command = app.add_subcommand("order", kSummary);
  command->footer(kOrderMore);
  const auto flags = std::make_shared<OrderFlags>();  // lives as long as the callback that fills it
  AddCommonOptions(*command, *flags);
  AddSamplerOptions(*command, *flags);
  command->callback([command, flags, &chosen] {
    if (command->count("--rank") > 0) flags->request.rank = flags->rank;
    chosen = [flags]() -> Status {
      ASSIGN_OR_RETURN(const OrderRequest request, RequestOf(*flags));
      return PrintOrder(request, stdout);
    };
  });
}

}  // namespace optcache::cli
