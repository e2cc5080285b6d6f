#pragma once

// Buckets of made-up datasets, for tests of what a client of S3 is answered.

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "dataset/manifest_builder.h"
#include "sidecar/s3/key_space.h"

namespace optcache::sidecar {

struct S3World {
  // A dataset of objects with those paths, 10 bytes each, in that order.
  void Add(std::string_view bucket, std::string prefix, const std::vector<std::string>& paths) {
    dataset::ManifestBuilder builder(dataset::Order::kList, {});
    for (const std::string& path : paths) {
      const dataset::Validator validator{.modified_ns = 784'111'777'000'000'000,
                                         .etag = "\"" + path + "\""};
      CHECK(builder.Add({.path = path, .size = 10, .validator = validator}).ok());
    }
    Take(bucket, std::move(prefix), std::move(builder).Finish().value());
  }
  // Two archives, "one.tar" and "two.tar", with a member each, as samples or joined to groups.
  void AddArchives(std::string_view bucket, dataset::Layout layout) {
    dataset::ManifestBuilder builder(dataset::Order::kList, {}, layout);
    std::uint32_t shard = 0;
    for (const char* const path : {"two.tar", "one.tar"}) {
      CHECK(builder.AddShard({.path = path, .size = 4096}).ok());
      const std::vector<dataset::Member> members = {
          {.name = layout == dataset::Layout::kGroups ? "jpg" : "", .offset = 512, .size = 10}};
      CHECK(builder.Add({.path = "a.jpg", .shard = shard++, .members = members}).ok());
    }
    Take(bucket, "", std::move(builder).Finish().value());
  }
  void Take(std::string_view bucket, std::string prefix, dataset::Manifest manifest) {
    manifests.push_back(std::move(manifest));
    keys.Add(bucket, "eu-test-1", manifests.size() - 1, {manifests.back(), std::move(prefix)});
  }

  std::deque<dataset::Manifest> manifests;
  KeySpace keys;
};

}  // namespace optcache::sidecar
