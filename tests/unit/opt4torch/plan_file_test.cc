#include "opt4torch/plan_file.h"

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "opt4torch/decision_table.h"
#include "opt4torch/safetensors.h"
#include "support/source_dir.h"

namespace optcache::plan {
namespace {

using testing::HasSubstr;
using Shapes = std::map<std::string, std::vector<std::uint64_t>>;
using Numbers = std::vector<std::int64_t>;

std::string Golden() {
  return ReadFile(InRepository("tests/golden/plan/opt4torch.safetensors"), 1_MiB).value();
}

// Written by the package safetensors; the table is OPT4TorchDataset's own.
TEST(PlanFile, ReadsWhatOpt4TorchDatasetWrites) {
  const auto plan = ParsePlanFile(AsBytes(Golden()));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->maxsize, 5U);
  EXPECT_EQ(plan->dataset_size, 20U);
  EXPECT_EQ(plan->seed, 3);
  EXPECT_EQ(plan->reads.size(), 100U);
  const Future future = FutureOf(plan->reads, plan->dataset_size);
  EXPECT_EQ(plan->steps, PlanAsOpt4Torch(future, plan->dataset_size, plan->maxsize));
  const Sizes sizes = Sizes::Equal(plan->dataset_size, 1);
  EXPECT_EQ(ReplayTable(*plan, Opt4TorchRuntime::kOneProcess, sizes)->hits, 49U);
  EXPECT_EQ(ReplayTable(*plan, Opt4TorchRuntime::kShared, sizes)->hits, 41U);
}

TEST(PlanFile, IsWrittenAsThePackageDoes) {
  const std::string golden = Golden();
  EXPECT_EQ(FormatPlanFile(ParsePlanFile(AsBytes(golden)).value()), golden);
}

// A plan of two reads of sample 0 among 3, one slot, as tensors that a test may spoil.
struct Parts {
  Numbers config{1, 3, 2, -7};
  Numbers table{1, -1, -1, -1, -1, 0};
  Numbers reads{0, 0};
  Shapes shapes{{"config", {4}}, {"decision_table", {2, 3}}, {"future_index", {2}}};

  std::string Bytes() const {
    std::string bytes = SafetensorsHeader(shapes);
    for (const Numbers& numbers : {config, table, reads}) {
      std::string raw(numbers.size() * 8, '\0');
      if (!raw.empty()) std::memcpy(raw.data(), numbers.data(), raw.size());
      bytes += raw;
    }
    return bytes;
  }
  std::string Error() const {
    const auto plan = ParsePlanFile(AsBytes(Bytes()));
    if (plan) return "no error";
    EXPECT_EQ(plan.error().code(), Code::kInvalidArgument);
    return plan.error().message();
  }
};

TEST(PlanFile, ReadsEachColumn) {
  const auto plan = ParsePlanFile(AsBytes(Parts().Bytes()));
  ASSERT_TRUE(plan) << plan.error().message();
  const PlanFile expected{.maxsize = 1,
                          .dataset_size = 3,
                          .seed = -7,
                          .reads = {0, 0},
                          .steps = {{.should_cache = 1}, {.release = 0}}};
  EXPECT_EQ(*plan, expected);
}

TEST(PlanFile, RefusesNumbersOutOfRange) {
  Parts parts;
  parts.reads[1] = 3;
  EXPECT_EQ(parts.Error(), "future_index, row 1: 3 is no sample; it takes 0 to 2");
  parts = {};
  parts.reads[0] = -1;
  EXPECT_EQ(parts.Error(), "future_index, row 0: -1 is no sample; it takes 0 to 2");
  parts = {};
  parts.table[0] = 2;
  EXPECT_EQ(parts.Error(), "decision_table, row 0: should_cache is 2, it takes 1, 0 or -1");
  parts = {};
  parts.table[4] = 5'000'000'000;
  EXPECT_EQ(parts.Error(),
            "decision_table, row 1: victim 5000000000 is no sample; it takes 0 to 2, or -1 for "
            "none");
  parts = {};
  parts.table[5] = -2;
  EXPECT_EQ(parts.Error(),
            "decision_table, row 1: release -2 is no sample; it takes 0 to 2, or -1 for none");
}

TEST(PlanFile, RefusesAConfigThatDoesNotFit) {
  Parts parts;
  parts.config[0] = -1;
  EXPECT_THAT(parts.Error(), HasSubstr("config: maxsize is -1"));
  parts = {};
  parts.config[1] = 0;
  EXPECT_THAT(parts.Error(), HasSubstr("config: dataset_size is 0"));
  parts.config[1] = 100'000'001;
  EXPECT_THAT(parts.Error(), HasSubstr("config: dataset_size is 100000001"));
  parts = {};
  parts.config[2] = 3;
  EXPECT_EQ(parts.Error(),
            "config: total_iterations is 3, future_index has 2 reads; generate the plan again");
}

TEST(PlanFile, RefusesOtherTensors) {
  Parts parts;
  parts.shapes = {{"config", {4}}, {"decision_table", {3, 2}}, {"future_index", {2}}};
  EXPECT_EQ(parts.Error(), "tensor 'decision_table' is I64 [3, 2], it must be I64 [2, 3]");
  parts.shapes = {{"config", {4}}, {"decision_table", {6}}, {"future_index", {2}}};
  EXPECT_EQ(parts.Error(), "tensor 'decision_table' is I64 [6], it must be I64 [2, 3]");
  parts.shapes = {{"config", {4}}, {"decision_table", {2, 3}}, {"future_index", {1, 2}}};
  EXPECT_EQ(parts.Error(), "tensor 'future_index' is [1, 2], it must be one number a read");
  parts.shapes = {{"config", {4}}, {"decisions", {2, 3}}, {"future_index", {2}}};
  EXPECT_EQ(parts.Error(),
            "no tensor 'decision_table'; there is: config, decisions, future_index. A plan has "
            "future_index, decision_table and config");
  std::string floats = Parts().Bytes();
  floats.replace(floats.rfind("I64"), 3, "F64");
  EXPECT_EQ(ParsePlanFile(AsBytes(floats)).error().message(),
            "tensor 'future_index' is F64 [2], it must be I64 [2]");
}

// A shape whose product would be the right length only modulo 2^64, or is not the data's.
TEST(PlanFile, RefusesShapesThatLie) {
  std::string lie = Parts().Bytes();
  const std::string shape = R"("shape":[2],)";
  lie.replace(lie.find(shape), shape.size(), R"("shape":[9],)");
  EXPECT_THAT(ParsePlanFile(AsBytes(lie)).error().message(),
              HasSubstr("has 16 bytes, I64 [9] takes 72"));
  Parts parts;
  parts.reads.clear();
  parts.table.clear();
  parts.config[2] = 0;
  parts.shapes = {{"config", {4}}, {"decision_table", {0, 3}}, {"future_index", {0}}};
  EXPECT_EQ(parts.Error(), "future_index is empty: the plan has no read");
  const std::string huge =
      R"({"future_index":{"dtype":"I64","shape":[2305843009213693952],"data_offsets":[0,0]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(huge.size());
  EXPECT_THAT(ParsePlanFile(AsBytes(file + huge)).error().message(),
              HasSubstr("at most 100000000 are taken"));
}

TEST(PlanFile, AnyCutIsRefused) {
  const std::string whole = Parts().Bytes();
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(ParsePlanFile(AsBytes(std::string_view(whole).substr(0, length)))) << length;
}

}  // namespace
}  // namespace optcache::plan
