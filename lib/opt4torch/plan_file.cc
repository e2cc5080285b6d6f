// Reads and writes plan files: three tensors to a PlanFile and back, row by row.
//
// The idea: shapes are checked before any number is read, so that the loops need no limits of their
// own. Numbers are copied from the file's bytes where they lie, without a copy of the tensors in
// between. A row is checked as it is read, and an error names the tensor and the row.
//
// FormatPlanFile writes the data in the order of the tensors' names, which SafetensorsHeader gives
// them: config, decision_table, future_index.

#include "opt4torch/plan_file.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "opt4torch/safetensors.h"

namespace optcache::plan {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

constexpr const char* kReads = "future_index";
constexpr const char* kTable = "decision_table";
constexpr const char* kConfig = "config";
constexpr std::size_t kColumns = 3;
constexpr std::size_t kConfigNumbers = 4;
constexpr std::size_t kNumberBytes = sizeof(std::int64_t);
constexpr std::int64_t kNone = -1;

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

std::string AtRow(const char* tensor, std::size_t row) {
  return std::string(tensor) + ", row " + std::to_string(row) + ": ";
}

// A tensor's numbers, in place.
class Numbers {
 public:
  explicit Numbers(ByteSpan bytes) : bytes_(bytes) {}
  std::size_t size() const { return bytes_.size() / kNumberBytes; }
  std::int64_t operator[](std::size_t i) const {
    std::int64_t number = 0;
    std::memcpy(&number, bytes_.data() + i * kNumberBytes, kNumberBytes);
    return number;
  }

 private:
  ByteSpan bytes_;
};

std::string NamesOf(const Tensors& tensors) {
  std::string names;
  for (const auto& [name, tensor] : tensors)
    names += (names.empty() ? "" : ", ") + name.substr(0, 40);
  return names.empty() ? "none" : names;
}

Result<Numbers> Find(const Tensors& tensors, const char* name,
                     const std::vector<std::uint64_t>& shape) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return Invalid(std::string("no tensor '") + name + "'; there is: " + NamesOf(tensors) +
                   ". A plan has future_index, decision_table and config");
  }
  const Tensor& tensor = found->second;
  if (tensor.dtype != "I64" || tensor.shape != shape) {
    return Invalid(std::string("tensor '") + name + "' is " + tensor.dtype.substr(0, 20) + " " +
                   FormatShape(tensor.shape) + ", it must be I64 " + FormatShape(shape));
  }
  std::uint64_t numbers = 1;
  for (const std::uint64_t length : shape)
    numbers *= length;  // at most 3 * kMaxPlanReads
  if (tensor.data.size() != numbers * kNumberBytes) {
    return Invalid(std::string("tensor '") + name + "' has " + std::to_string(tensor.data.size()) +
                   " bytes, I64 " + FormatShape(shape) + " takes " +
                   std::to_string(numbers * kNumberBytes));
  }
  return Numbers(tensor.data);
}

Result<std::uint64_t> CountReads(const Tensors& tensors) {
  const auto reads = tensors.find(kReads);
  if (reads == tensors.end()) return 0;  // Find says so
  if (reads->second.shape.size() != 1) {
    return Invalid("tensor 'future_index' is " + FormatShape(reads->second.shape) +
                   ", it must be one number a read");
  }
  const std::uint64_t count = reads->second.shape[0];
  if (count == 0) return Invalid("future_index is empty: the plan has no read");
  if (count > kMaxPlanReads) {
    return Invalid("future_index has " + std::to_string(count) + " reads, at most " +
                   std::to_string(kMaxPlanReads) + " are taken");
  }
  return count;
}

Status ReadConfig(const Numbers& config, std::uint64_t reads, PlanFile& plan) {
  const std::int64_t maxsize = config[0];
  const std::int64_t dataset_size = config[1];
  if (maxsize < 0) {
    return Invalid("config: maxsize is " + std::to_string(maxsize) + ", it takes 0 and more")
        .error();
  }
  if (dataset_size < 1 || dataset_size > std::int64_t{kMaxPlanSamples}) {
    return Invalid("config: dataset_size is " + std::to_string(dataset_size) + ", it takes 1 to " +
                   std::to_string(kMaxPlanSamples))
        .error();
  }
  if (config[2] != static_cast<std::int64_t>(reads)) {
    return Invalid("config: total_iterations is " + std::to_string(config[2]) +
                   ", future_index has " + std::to_string(reads) +
                   " reads; generate the plan again")
        .error();
  }
  plan.maxsize = static_cast<std::uint64_t>(maxsize);
  plan.dataset_size = static_cast<std::uint32_t>(dataset_size);
  plan.seed = config[3];
  return OkStatus();
}

class RowReader {
 public:
  explicit RowReader(PlanFile& plan) : plan_(plan) {}

  Status ReadSample(std::size_t row, std::int64_t sample) {
    if (!IsSample(sample)) return OutOfRange(AtRow(kReads, row), sample, "");
    plan_.reads[row] = static_cast<SampleId>(sample);
    return OkStatus();
  }

  Status ReadStep(std::size_t row, std::array<std::int64_t, kColumns> numbers) {
    const auto [should_cache, victim, release] = numbers;
    if (should_cache < -1 || should_cache > 1) {
      return Invalid(AtRow(kTable, row) + "should_cache is " + std::to_string(should_cache) +
                     ", it takes 1, 0 or -1")
          .error();
    }
    if (victim != kNone && !IsSample(victim))
      return OutOfRange(AtRow(kTable, row) + "victim ", victim, ", or -1 for none");
    if (release != kNone && !IsSample(release))
      return OutOfRange(AtRow(kTable, row) + "release ", release, ", or -1 for none");
    plan_.steps[row] = {.should_cache = static_cast<std::int8_t>(should_cache),
                        .victim = ToSample(victim),
                        .release = ToSample(release)};
    return OkStatus();
  }

 private:
  bool IsSample(std::int64_t number) const {
    return number >= 0 && number < std::int64_t{plan_.dataset_size};
  }
  static SampleId ToSample(std::int64_t number) {
    return number == kNone ? kNoSample : static_cast<SampleId>(number);
  }
  Status OutOfRange(const std::string& where, std::int64_t number, const char* or_else) const {
    return Invalid(where + std::to_string(number) + " is no sample; it takes 0 to " +
                   std::to_string(plan_.dataset_size - 1) + or_else)
        .error();
  }

  PlanFile& plan_;
};

void Append(std::string& bytes, std::int64_t number) {
  std::array<char, kNumberBytes> raw{};
  std::memcpy(raw.data(), &number, kNumberBytes);
  bytes.append(raw.data(), kNumberBytes);
}

std::int64_t FromSample(SampleId sample) {
  return sample == kNoSample ? kNone : std::int64_t{sample};
}

}  // namespace

Result<PlanFile> ParsePlanFile(ByteSpan bytes) {
  ASSIGN_OR_RETURN(const Tensors tensors, ParseSafetensors(bytes));
  ASSIGN_OR_RETURN(const std::uint64_t count, CountReads(tensors));
  ASSIGN_OR_RETURN(const Numbers reads, Find(tensors, kReads, {count}));
  ASSIGN_OR_RETURN(const Numbers table, Find(tensors, kTable, {count, kColumns}));
  ASSIGN_OR_RETURN(const Numbers config, Find(tensors, kConfig, {kConfigNumbers}));
  PlanFile plan;
  RETURN_IF_ERROR(ReadConfig(config, count, plan));
  plan.reads.resize(reads.size());
  plan.steps.resize(reads.size());
  RowReader rows(plan);
  for (std::size_t row = 0; row < reads.size(); ++row) {
    const std::size_t first = row * kColumns;
    RETURN_IF_ERROR(rows.ReadSample(row, reads[row]));
    RETURN_IF_ERROR(rows.ReadStep(row, {table[first], table[first + 1], table[first + 2]}));
  }
  return plan;
}

std::string FormatPlanFile(const PlanFile& plan) {
  CHECK(plan.reads.size() == plan.steps.size());
  const std::uint64_t count = plan.reads.size();
  std::string bytes =
      SafetensorsHeader({{kReads, {count}}, {kTable, {count, kColumns}}, {kConfig, {4}}});
  bytes.reserve(bytes.size() + (count * (1 + kColumns) + kConfigNumbers) * kNumberBytes);
  Append(bytes, static_cast<std::int64_t>(plan.maxsize));
  Append(bytes, plan.dataset_size);
  Append(bytes, static_cast<std::int64_t>(count));
  Append(bytes, plan.seed);
  for (const Opt4TorchStep& step : plan.steps) {
    Append(bytes, step.should_cache);
    Append(bytes, FromSample(step.victim));
    Append(bytes, FromSample(step.release));
  }
  for (const SampleId sample : plan.reads)
    Append(bytes, sample);
  return bytes;
}

}  // namespace optcache::plan
