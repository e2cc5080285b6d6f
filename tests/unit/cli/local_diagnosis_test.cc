#include "cli/explain/local_diagnosis.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/golden_file.h"

namespace optcache::cli {
namespace {

using coordination::ClusterStatus;

ClusterStatus HealthyCache() {
  ClusterStatus status;
  status.members = {{.id = 1, .name = "node-0", .capacity = 2_GiB, .silent_seconds = 0.4}};
  status.sidecars = {{.name = "sidecar-0", .socket = "/run/0.sock", .metrics = "http://s/metrics"}};
  status.datasets = {{.name = "default/photos",
                      .total_samples = 1000,
                      .total_bytes = 4_GiB,
                      .capacity = 1_GiB,
                      .planned = {0, 16},
                      .sum = {.used_bytes = 1_GiB},
                      .saved = {.requests = 290, .bytes = 1'000'000'000, .wait_us = 2'500'000},
                      .ratios = {.observed = 0.248, .predicted = 0.25},
                      .streams = {{.name = "default/local/photos/train",
                                   .pass = 4,
                                   .position = 500,
                                   .length = 1000,
                                   .world = 2,
                                   .ranks = 2,
                                   .planned = true,
                                   .rate = 2410.4}},
                      .nodes = {{.name = "node-0", .used = 1_GiB}}}};
  return status;
}

PageLooks Page() {
  return {.before = ParseMetrics("optcache_loaders_attached 2\n"),
          .after = ParseMetrics("optcache_loaders_attached 2\n"
                                "optcache_client_samples_total{source=\"local\"} 250\n"
                                "optcache_client_samples_total{source=\"store\"} 750\n"
                                "optcache_client_wait_seconds_total 2\n"
                                "optcache_client_wait_cause_seconds_total{cause=\"store\"} 2\n"
                                "optcache_store_received_bytes_total 2000000\n"),
          .seconds = 2};
}

std::string TitledDataset(const std::string& title, const ClusterStatus& status) {
  const auto told = ExplainLocalDataset({.status = status}, "photos");
  EXPECT_TRUE(told) << told.error().message();
  return "# dataset, " + title + "\n" + ExplanationAsText(*told) + "\n";
}

std::string TitledJob(const std::string& title, const LocalAnswers& answers) {
  const auto told = ExplainLocalJob(answers, "local");
  EXPECT_TRUE(told) << told.error().message();
  return "# job, " + title + "\n" + ExplanationAsText(*told) + "\n";
}

TEST(LocalDiagnosis, TellsOfACacheOnThisMachine) {
  std::string text = TitledDataset("healthy", HealthyCache());
  ClusterStatus status = HealthyCache();
  status.datasets[0].store = {
      .answering = 0, .silent = 1, .members_silent = 1, .silent_seconds = 70, .cause = "timeout"};
  status.datasets[0].notes = {"the store is silent: told already", "memory gives 50 %"};
  status.members[0].silent_seconds = 12;
  text += TitledDataset("the store is silent, and a node", status);
  status = HealthyCache();
  status.datasets[0].ratios = {};
  status.datasets[0].streams = {};
  status.datasets[0].planned = {};
  status.datasets[0].saved = {};
  text += TitledDataset("no job reads it", status);
  text += TitledDataset("no node", [] {
    ClusterStatus without = HealthyCache();
    without.members = {};
    return without;
  }());
  text += TitledJob("slow store", {.status = HealthyCache(), .pages = {Page()}});
  status = HealthyCache();
  status.datasets[0].streams[0].ranks = 1;
  text += TitledJob("a rank and a sidecar are missing",
                    {.status = status, .pages = {}, .silent_pages = 1});
  ExpectGolden(text, "cli/explain-local.txt");
}

TEST(LocalDiagnosis, AnObjectThatHasChangedIsTold) {
  ClusterStatus status = HealthyCache();
  status.datasets[0].store = {.answering = 1, .cause = "", .changed = "a.jpg"};
  status.datasets[0].notes = {coordination::DescribeChange("a.jpg")};
  const auto told = ExplainLocalDataset({.status = status}, "default/photos");
  ASSERT_TRUE(told) << told.error().message();
  const Finding& first = told->findings.front();
  EXPECT_EQ(first.about, "index");
  EXPECT_EQ(first.what, coordination::DescribeChange("a.jpg"));
  EXPECT_NE(first.to_do.find("--reindex"), std::string::npos) << first.to_do;
  EXPECT_EQ(std::ranges::count(told->findings, "note", &Finding::about), 0) << "it is told once";
}

TEST(LocalDiagnosis, HitsFarBelowThePredictionAreAWarning) {
  ClusterStatus status = HealthyCache();
  status.datasets[0].ratios.observed = 0.1;
  const auto told = ExplainLocalDataset({.status = status}, "default/photos");
  ASSERT_TRUE(told) << told.error().message();
  EXPECT_EQ(told->findings.front().about, "hit ratio");
  EXPECT_EQ(told->findings.front().severity, Severity::kWarning);
}

TEST(LocalDiagnosis, AJobIsCalledByItsStreamOrItsJob) {
  ClusterStatus status = HealthyCache();
  status.datasets[0].streams[0].name = "default/resnet.1a2b3c4d/photos/train";
  for (const char* name : {"default/resnet.1a2b3c4d/photos/train", "resnet.1a2b3c4d", "resnet"})
    EXPECT_TRUE(ExplainLocalJob({.status = status}, name)) << name;
  EXPECT_FALSE(ExplainLocalJob({.status = status}, "photos"));
}

TEST(LocalDiagnosis, AStreamIsCalledAsTheStatusShowsIt) {
  ClusterStatus status = HealthyCache();
  status.datasets[0].streams[0].incarnation = 12;
  const std::string name = status.datasets[0].streams[0].name;
  EXPECT_TRUE(ExplainLocalJob({.status = status}, name + "#12"));
  for (const char* other : {"#1", "#2", "#", "#012", "#12x"})
    EXPECT_FALSE(ExplainLocalJob({.status = status}, name + other)) << other;
}

TEST(LocalDiagnosis, ALoadersNameIsOfSeveralJobs) {
  ClusterStatus status = HealthyCache();
  status.datasets[0].streams.push_back({.name = "default/resnet.1a2b3c4d/photos/train"});
  const auto told = ExplainLocalJob({.status = status}, "train");
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code(), Code::kNotFound);
  EXPECT_EQ(told.error().message(),
            "there is no job train, but loaders of that name: default/local/photos/train, "
            "default/resnet.1a2b3c4d/photos/train; explain a job by its name or by one of these");
}

TEST(LocalDiagnosis, WhatIsNotThereNamesWhatIs) {
  const auto dataset = ExplainLocalDataset({.status = HealthyCache()}, "hotos");
  ASSERT_FALSE(dataset);
  EXPECT_EQ(dataset.error().code(), Code::kNotFound);
  EXPECT_EQ(dataset.error().message(), "there is no dataset hotos; there are: default/photos");
  ClusterStatus two = HealthyCache();
  two.datasets.push_back({.name = "team/photos"});
  EXPECT_EQ(ExplainLocalDataset({.status = two}, "photos").error(),
            Status(Code::kInvalidArgument,
                   "several datasets have the name photos: default/photos, team/photos. Write one "
                   "with its namespace, for example default/photos"));
  const auto job = ExplainLocalJob({.status = HealthyCache()}, "val");
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().message(),
            "there is no stream of a job val; there are: default/local/photos/train");
  EXPECT_EQ(ExplainLocalJob({}, "val").error().message(),
            "there is no stream of a job val; no job is attached now");
}

}  // namespace
}  // namespace optcache::cli
