#include "cli/up/local_sources.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

TEST(LocalSources, AreReadAsTheyWereWritten) {
  const TempDir dir;
  const LocalSources sources{
      .ca_file = "/etc/ca.crt",
      .datasets = {{.name = "default/images",
                    .manifest_file = "/state/manifests/default.images.manifest",
                    .store = "s3://bucket/train \"x\"/",
                    .order = "torch-distributed size=5",
                    .keys_folder = "/keys",
                    .limits = {.requests_per_second = 7, .bytes_per_second = 5_MiB},
                    .patience = std::chrono::seconds(90)},
                   {.name = "b/c", .manifest_file = "/m", .store = "/data"}}};
  ASSERT_TRUE(WriteLocalSources(dir.path(), sources).ok());
  EXPECT_EQ(ReadLocalSources(dir.path()).value(), sources);
  RemoveLocalSources(dir.path());
  const auto gone = ReadLocalSources(dir.path());
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
  EXPECT_TRUE(gone.error().message().contains("`optcache up` does not run in"));
}

TEST(LocalSources, WhatIsNoneIsAnError) {
  for (const char* text : {"", "[]", "{}", R"({"datasets":{}})", R"({"datasets":[{"name":"a/b"}]})",
                           R"({"datasets":[3]})"}) {
    const auto parsed = ParseLocalSources(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace optcache::cli
