// Replays the vectors that PyTorch and frameworks made: tests/golden/sampler, written by
// make_vectors.py and make_framework_vectors.py there.

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "base/files.h"
#include "sampler/mt19937.h"
#include "sampler/order_source.h"
#include "sampler/randperm.h"
#include "sampler/recipe_text.h"
#include "support/seeds.h"
#include "support/source_dir.h"

namespace optcache::sampler {
namespace {

// One line: a kind, then name=value words; of a framework's, with the recipe to the end.
struct Vector {
  std::string kind;
  bool modern = true;
  std::map<std::string, std::string> words;

  std::uint64_t Number(const std::string& name) const { return std::stoull(words.at(name)); }
  bool Flag(const std::string& name) const { return words.at(name) == "1"; }
};

Vector ParseVector(const std::string& line, bool modern) {
  constexpr std::string_view kRecipe = " recipe=";
  const std::size_t recipe = line.find(kRecipe);
  std::istringstream in(line.substr(0, recipe));
  Vector vector{.modern = modern, .words = {}};
  in >> vector.kind;
  if (recipe != std::string::npos) {
    vector.words["recipe"] = line.substr(recipe + kRecipe.size());
  }
  for (std::string word; in >> word;) {
    const std::size_t equals = word.find('=');
    vector.words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return vector;
}

std::vector<SampleId> Replay(const Vector& vector) {
  if (vector.kind == "randperm") {
    Mt19937 generator(static_cast<std::uint64_t>(std::stoll(vector.words.at("seed"))));
    const bool wide = vector.words.at("variant") == "wide";
    return MakeRandperm(vector.Number("size"), wide ? Randperm::kWide : Randperm::kNarrow,
                        generator);
  }
  if (vector.words.contains("recipe")) {
    const Recipe recipe = ParseRecipe(vector.words.at("recipe")).value();
    const auto rank = static_cast<Rank>(vector.Number("rank"));
    return OrderSource::Make(recipe)->RankOrder(vector.Number("epoch"), rank).value();
  }
  Recipe recipe{.kind = ParseKind(vector.kind).value(), .size = vector.Number("size")};
  if (recipe.kind == Kind::kSequential) return OrderSource::Make(recipe)->PassOrder(0).value();
  recipe.seed = std::stoll(vector.words.at("seed"));
  if (recipe.kind == Kind::kTorchRandom) {
    recipe.base_seed = ParseBaseSeed(vector.words.at("base_seed")).value();
    recipe.modern_randperm = vector.modern;
    if (vector.words.contains("draws")) {
      recipe.draws = vector.Number("draws");
      recipe.replacement = vector.Flag("replacement");
    }
    return OrderSource::Make(recipe)->PassOrder(vector.Number("epoch")).value();
  }
  recipe.world = static_cast<std::uint32_t>(vector.Number("world"));
  recipe.shuffle = vector.Flag("shuffle");
  recipe.drop_last = vector.Flag("drop_last");
  const auto rank = static_cast<Rank>(vector.Number("rank"));
  return OrderSource::Make(recipe)->RankOrder(vector.Number("epoch"), rank).value();
}

std::string Head(const std::vector<SampleId>& order) {
  std::string head;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, order.size()); ++i) {
    head += (i == 0 ? "" : ",") + std::to_string(order[i]);
  }
  return head;
}

void ReplayFile(const std::filesystem::path& path, bool modern, int expected_lines) {
  std::istringstream lines(ReadFile(path, 1_MiB).value());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Vector vector = ParseVector(line, modern);
    const std::vector<SampleId> order = Replay(vector);
    EXPECT_EQ(order.size(), vector.Number("count")) << line;
    EXPECT_EQ(OrderCrc(order), std::stoul(vector.words.at("crc"), nullptr, 16)) << line;
    EXPECT_EQ(Head(order), vector.words.at("head")) << line;
  }
  EXPECT_EQ(count, expected_lines);
}

class SamplerGolden : public testing::TestWithParam<std::string> {
 protected:
  static std::filesystem::path File(const std::string& suffix) {
    return std::filesystem::path(InRepository("tests/golden/sampler")) /
           ("torch-" + GetParam() + suffix);
  }
  static bool modern() { return GetParam() != "1.13"; }
};

TEST_P(SamplerGolden, ReplaysWhatTorchReads) {
  ReplayFile(File(".txt"), modern(), 282);
}

TEST_P(SamplerGolden, ReplaysTheSizesAroundTheLimitOfRandperm) {
  if (!LongTests()) GTEST_SKIP() << "takes a minute and 900 MB: OPTCACHE_LONG=1";
  ReplayFile(File("-large.txt"), modern(), 3);
}

INSTANTIATE_TEST_SUITE_P(Torch, SamplerGolden, testing::Values("1.13", "2.15"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

// So that the CRC of a pass tells which version the training process has.
TEST(GoldenFiles, VersionsDifferFromTheLimitOnAndNotBefore) {
  const auto crcs = [](const std::string& version) {
    std::vector<std::string> found;
    const auto path = std::filesystem::path(InRepository("tests/golden/sampler")) /
                      ("torch-" + version + "-large.txt");
    std::istringstream lines(ReadFile(path, 1_MiB).value());
    for (std::string line; std::getline(lines, line);)
      found.push_back(ParseVector(line, true).words.at("crc"));
    return found;
  };
  const auto before = crcs("1.13");
  const auto after = crcs("2.15");
  EXPECT_EQ(before.at(0), after.at(0));
  EXPECT_NE(before.at(1), after.at(1));
  EXPECT_NE(before.at(2), after.at(2));
}

// Each by the package's own classes; Megatron's, which is in no package, by those of its source.
TEST(FrameworkGolden, ReplaysWhatFrameworksRead) {
  const auto folder = std::filesystem::path(InRepository("tests/golden/sampler"));
  ReplayFile(folder / "accelerate.txt", true, 180);
  ReplayFile(folder / "megatron.txt", true, 120);
  ReplayFile(folder / "spdl.txt", true, 66);
}

}  // namespace
}  // namespace optcache::sampler
