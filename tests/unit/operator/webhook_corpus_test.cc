// tests/golden/injection: what becomes of nearly a hundred pods. UPDATE_GOLDEN=1 writes the answers
// anew; tests/injection applies the patches with an implementation of JSON patch that is not ours.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "operator/webhook/inject.h"
#include "support/fake_datasets.h"
#include "support/source_dir.h"

namespace optcache::webhook {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

std::vector<std::filesystem::path> Cases() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(InRepository("tests/golden/injection")))
    files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

struct Case {
  OrderedJson file;
  Json pod;
  InjectionSettings settings;
  std::string name_space() const { return pod["metadata"]["namespace"]; }
};

Case ReadCase(const std::filesystem::path& path) {
  std::ifstream in(path);
  Case read{.file = OrderedJson::parse(in)};
  read.pod = read.file["pod"];
  read.settings = {.version = "0.1.0",
                   .sidecar_image = "optcache/sidecar:0.1.0",
                   .ordinary_sidecars = read.file.value("legacy", false)};
  return read;
}

OrderedJson Answer(const Case& read, const Injection& injection) {
  OrderedJson file = {{"about", read.file["about"]}};
  if (read.file.contains("legacy")) file["legacy"] = read.file["legacy"];
  file["pod"] = read.file["pod"];
  file["outcome"] = OutcomeName(injection.outcome);
  file["reason"] = ReasonName(injection.reason);
  if (!injection.message.empty()) file["message"] = injection.message;
  if (!injection.warnings.empty()) file["warnings"] = injection.warnings;
  if (!injection.patch.empty()) file["patched"] = read.pod.patch(injection.patch);
  return file;
}

class Corpus : public testing::TestWithParam<std::filesystem::path> {
 protected:
  const Case case_ = ReadCase(GetParam());
  const FakeDatasets datasets_ = FakeDatasets::OfCorpus();

  Injection Decide(const Json& pod) const {
    return DecideInjection(pod, case_.name_space(), datasets_, case_.settings);
  }
};

TEST_P(Corpus, GetsItsAnswer) {
  const OrderedJson answer = Answer(case_, Decide(case_.pod));
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(GetParam()) << answer.dump(1) << "\n";
  EXPECT_EQ(answer.dump(1), ReadCase(GetParam()).file.dump(1));
}

// Also what an API server that calls a second time sees.
TEST_P(Corpus, IsLeftAloneTheSecondTime) {
  const Injection first = Decide(case_.pod);
  const Injection second = Decide(case_.pod.patch(first.patch));
  EXPECT_THAT(second.patch, testing::IsEmpty());
  EXPECT_EQ(second.outcome,
            first.outcome == Outcome::kDenied ? Outcome::kDenied : Outcome::kSkipped);
}

TEST_P(Corpus, ChangesNothingUnlessInjected) {
  const Injection injection = Decide(case_.pod);
  EXPECT_EQ(injection.patch.empty(), injection.outcome != Outcome::kInjected);
  EXPECT_EQ(injection.message.empty(), injection.outcome != Outcome::kDenied);
}

// kubectl shows 256 characters of a warning.
TEST_P(Corpus, WarnsInWholeSentences) {
  for (const std::string& warning : Decide(case_.pod).warnings)
    EXPECT_LE(std::string("optcache: ").size() + warning.size(), 256U) << warning;
}

// Everything that the pod was is still there, but for items that stand in longer lists now.
void ExpectKept(const Json& before, const Json& after, const std::string& where) {
  if (before.is_object()) {
    for (const auto& [key, value] : before.items()) {
      if (value.is_null() || key == "optcache.io/injected") continue;
      ASSERT_TRUE(after.contains(key)) << where << "/" << key;
      ExpectKept(value, after[key], where + "/" + key);
    }
  } else if (before.is_array()) {
    std::size_t at = 0;
    for (const Json& item : before) {
      const auto same = [&item](const Json& other) {
        return item.is_object() && item.contains("name")
                   ? Json(other.value("name", "")) == item["name"]
                   : other == item || item.contains("matchExpressions") ||
                         item.contains("matchFields");
      };
      while (at < after.size() && !same(after[at]))
        ++at;
      ASSERT_LT(at, after.size()) << where << ": " << item;
      ExpectKept(item, after[at], where + "/" + std::to_string(at));
      ++at;
    }
  } else if (!where.ends_with("/value")) {
    EXPECT_EQ(before, after) << where;
  } else {
    EXPECT_TRUE(after.get<std::string>().starts_with(before.get<std::string>())) << where;
  }
}

TEST_P(Corpus, KeepsAllThatThePodWas) {
  ExpectKept(case_.pod, case_.pod.patch(Decide(case_.pod).patch), "");
}

INSTANTIATE_TEST_SUITE_P(Pods, Corpus, testing::ValuesIn(Cases()), [](const auto& param) {
  std::string name = param.param.stem();
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(CorpusOfPods, ShowsEveryReasonButThoseOfOtherRequests) {
  std::vector<std::string> missing;
  for (auto reason = Reason::kInjected; reason <= Reason::kNoCommonMachine;
       reason = static_cast<Reason>(static_cast<int>(reason) + 1)) {
    const auto shows = [reason](const std::filesystem::path& path) {
      return ReadCase(path).file.value("reason", "") == ReasonName(reason);
    };
    if (!std::ranges::any_of(Cases(), shows)) missing.emplace_back(ReasonName(reason));
  }
  EXPECT_THAT(missing, testing::ElementsAre("not_create"));
}

}  // namespace
}  // namespace optcache::webhook
