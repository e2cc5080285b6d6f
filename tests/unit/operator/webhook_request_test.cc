#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/webhook/request.h"

namespace optcache::webhook {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json PodWith(const Json& annotations) {
  return {{"metadata", {{"annotations", annotations}}}};
}

Json Asking(const std::string& annotation, const Json& value) {
  return PodWith({{"optcache.io/dataset", "a"}, {"optcache.io/" + annotation, value}});
}

std::string Complaint(const Json& pod) {
  const auto request = ParseRequest(pod, "vision");
  return request ? "" : request.error().message();
}

TEST(Request, HasDefaults) {
  const auto request = ParseRequest(PodWith({{"optcache.io/dataset", "a"}}), "vision");
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_THAT(request->datasets, ElementsAre(DatasetName{"vision", "a"}));
  EXPECT_EQ(request->shared_bytes(), 1_GiB);
  EXPECT_EQ(request->cpu, "500m");
  EXPECT_EQ(request->memory, "");
  EXPECT_FALSE(request->optional);
  EXPECT_TRUE(request->python);
}

TEST(Request, ReadsSeveralDatasets) {
  const auto request =
      ParseRequest(PodWith({{"optcache.io/dataset", "a , speech/b.c,d"}}), "vision");
  ASSERT_TRUE(request) << request.error().message();
  EXPECT_THAT(request->datasets,
              ElementsAre(DatasetName{"vision", "a"}, DatasetName{"speech", "b.c"},
                          DatasetName{"vision", "d"}));
}

TEST(Request, RefusesWhatIsNoListOfDatasets) {
  for (const char* text : {"", ",", "a,", "a,a", "a,vision/a", "A", "-a", "a/b/c", "/a", "a/",
                           "a b", "a\n", "a_b", "x.y/a"}) {
    EXPECT_NE(Complaint(PodWith({{"optcache.io/dataset", text}})), "") << text;
  }
}

TEST(Request, RefusesMoreDatasetsThanItServes) {
  std::string list = "d0";
  for (std::size_t i = 1; i < kMaxDatasetsPerPod; ++i)
    list += ",d" + std::to_string(i);
  EXPECT_EQ(Complaint(PodWith({{"optcache.io/dataset", list}})), "");
  EXPECT_THAT(Complaint(PodWith({{"optcache.io/dataset", list + ",d16"}})),
              HasSubstr("at most 16"));
}

TEST(Request, LendsToDatasetsOfOtherNamespaces) {
  const auto request = ParseRequest(PodWith({{"optcache.io/dataset", "own,speech/a,audio/b"},
                                             {"optcache.io/keys", "speech/a=s, audio/b=t.u"},
                                             {"optcache.io/claims", "audio/b=c"},
                                             {"optcache.io/pod-identity", "speech/a"}}),
                                    "vision");
  ASSERT_TRUE(request) << request.error().message();
  ASSERT_EQ(request->loans.size(), 2U);
  const Loan& a = request->loans.at("speech/a");
  EXPECT_EQ(a.secret, "s");
  EXPECT_EQ(a.claim, "");
  EXPECT_TRUE(a.pod_identity);
  const Loan& b = request->loans.at("audio/b");
  EXPECT_EQ(b.secret, "t.u");
  EXPECT_EQ(b.claim, "c");
  EXPECT_FALSE(b.pod_identity);
}

TEST(Request, RefusesToLendWhatHasNoEffect) {
  const auto lending = [](const char* annotation, const char* text) {
    return Complaint(PodWith({{"optcache.io/dataset", "own,speech/a"},
                              {std::string("optcache.io/") + annotation, text}}));
  };
  for (const char* annotation : {"keys", "claims"}) {
    for (const char* text :
         {"", "speech/a", "speech/a=", "=s", "speech/a=S", "speech/a=s,", "speech/a=s,speech/a=t",
          "speech/a=s/t", "speech/b=s", "own=s", "vision/own=s", "a=s"}) {
      EXPECT_NE(lending(annotation, text), "") << annotation << " " << text;
    }
    EXPECT_EQ(lending(annotation, "speech/a=s"), "");
  }
  for (const char* text : {"", "speech/b", "own", "speech/a=s", "speech/a,"})
    EXPECT_NE(lending("pod-identity", text), "") << text;
  EXPECT_EQ(lending("keys", "speech/b=s"),
            "annotation optcache.io/keys: Dataset speech/b is not in optcache.io/dataset");
  EXPECT_EQ(lending("pod-identity", "own"),
            "annotation optcache.io/pod-identity: Dataset vision/own is of this namespace, and its "
            "spec says what it is read by");
  EXPECT_EQ(lending("claims", "speech/a"),
            "annotation optcache.io/claims is \"speech/a\": write NAMESPACE/NAME=CLAIM, several by "
            "comma, no Dataset twice");
}

TEST(Request, SaysWhatIsWrongAndWhatIsAllowed) {
  EXPECT_EQ(Complaint(Asking("arena", "plenty")),
            "annotation optcache.io/arena is \"plenty\": write a quantity of bytes from 16Mi to "
            "4Ti, for example 1Gi");
}

TEST(Request, ChecksEachAnnotation) {
  struct Row {
    const char* annotation;
    const char* text;
    bool right;
  };
  const Row rows[] = {
      {"arena", "16Mi", true},
      {"arena", "15Mi", false},
      {"arena", "4Ti", true},
      {"arena", "5Ti", false},
      {"arena", "-1Gi", false},
      {"arena", "", false},
      {"computed", "16Gi", true},
      {"computed", "1", false},
      {"headspace", "true", true},
      {"headspace", "false", true},
      {"headspace", "steps=200,free-steps=100", true},
      {"headspace", "steps=19", false},
      {"headspace", "True", false},
      {"headspace", "steps=200,$(HOME)", false},
      {"headspace", "", false},
      {"resources", "cpu=1", true},
      {"resources", "memory=2Gi,cpu=100m", true},
      {"resources", "ephemeral-storage=2Gi", true},
      {"resources", "ephemeral-storage=0", false},
      {"resources", "cpu", false},
      {"resources", "cpu=1,cpu=2", false},
      {"resources", "cpu=0", false},
      {"resources", "cpu=1e3", false},
      {"resources", "cpu=nan", false},
      {"resources", "cpu=1025", false},
      {"resources", "gpu=1", false},
      {"resources", "", false},
      {"resources", "memory=0", false},
      {"containers", "a,b-1", true},
      {"containers", "", false},
      {"containers", "a.b", false},
      {"fallback-keys", "true", true},
      {"fallback-keys", "1", false},
      {"python", "false", true},
      {"python", "False", false},
      {"optional", "true", true},
      {"optional", "1", false},
      {"owner", "sweep_7.A-b", true},
      {"owner", "a/b", false},
      {"owner", "$(HOME)", false},
      {"owner", "", false},
      {"incarnation", "1", true},
      {"incarnation", "4294967295", true},
      {"incarnation", "0", false},
      {"incarnation", "4294967296", false},
      {"incarnation", "1x", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Complaint(Asking(row.annotation, row.text)).empty(), row.right)
        << row.annotation << " " << row.text;
  }
}

TEST(Request, QuotesNoMoreThanIsReadable) {
  const std::string complaint = Complaint(Asking("owner", std::string(5000, '\n')));
  EXPECT_LT(complaint.size(), 200U);
  EXPECT_THAT(complaint, HasSubstr("????"));
}

TEST(Request, TakesWhatIsNoTextForEmpty) {
  EXPECT_NE(Complaint(Asking("arena", 5)), "");
  EXPECT_NE(Complaint(PodWith({{"optcache.io/dataset", nullptr}})), "");
}

}  // namespace
}  // namespace optcache::webhook
