#pragma once

// The Datasets that the pods of tests/golden/injection name.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "operator/webhook/dataset_view.h"

namespace optcache::webhook {

class FakeDatasets : public DatasetView {
 public:
  bool synced() const override { return synced_; }
  const DatasetFacts* Find(std::string_view name_space, std::string_view name) const override {
    const auto found = datasets_.find(std::pair(std::string(name_space), std::string(name)));
    return found == datasets_.end() ? nullptr : &found->second;
  }

  void set_synced(bool synced) { synced_ = synced; }
  void Add(DatasetFacts facts) {
    auto key = std::pair(facts.name_space, facts.name);
    datasets_.insert_or_assign(std::move(key), std::move(facts));
  }

  // Of namespace vision, which speech and audio may use, and one of speech.
  static FakeDatasets OfCorpus() {
    FakeDatasets datasets;
    const auto add = [&datasets](std::string name, DatasetFacts facts) {
      facts.name_space = "vision";
      facts.name = std::move(name);
      datasets.Add(std::move(facts));
    };
    const auto at = [](std::string url) {
      return DatasetFacts{.url = std::move(url),
                          .access = {"speech", "audio"},
                          .hostnames = {"m2", "m1"},
                          .indexed = true,
                          .samples = 1'281'167,
                          .largest_sample = 15_MiB};
    };
    const auto required = [&at](std::vector<std::string> hostnames) {
      DatasetFacts facts = at("http://store/pinned/");
      facts.scheduling = api::SchedulingPreference::kRequired;
      facts.hostnames = std::move(hostnames);
      return facts;
    };
    const auto of_claim = [&at](std::string folder) {
      DatasetFacts facts = at("");
      facts.claim = "scans-rwx";
      facts.claim_folder = std::move(folder);
      return facts;
    };
    add("imagenet", at("http://store/images/"));
    add("coco", at("https://store/coco/"));
    add("fresh", {.url = "http://store/fresh/"});
    add("pinned", required({"m1", "m2", "m3"}));
    add("pinned-too", required({"m4", "m3", "m2"}));
    add("pinned-elsewhere", required({"m9"}));
    add("pinned-nowhere", required({}));
    add("scans", of_claim("train"));
    add("scans-small", of_claim(""));
    add("future", at(""));
    add("dollars", at("http://store/$(HOME)/$x/"));
    DatasetFacts anywhere = at("http://store/anywhere/");
    anywhere.scheduling = api::SchedulingPreference::kNone;
    add("anywhere", std::move(anywhere));
    DatasetFacts guarded = at("https://store/guarded/");
    guarded.secret = "keys";
    add("guarded", std::move(guarded));
    DatasetFacts bucket = at("s3://images/train/?region=eu-west-1");
    bucket.secret = "bucket-keys";
    bucket.requests_per_second = 200;
    bucket.bytes_per_second = 50 << 20;
    bucket.patience_seconds = 1800;
    bucket.price = {.per_request = 0.0000004, .per_gib = 0.09};
    add("bucket", std::move(bucket));
    DatasetFacts role = at("s3://images/");
    role.url_by_identity = std::string("s3://images/?role-arn=arn&token-file=") + kStsToken;
    DatasetFacts of_speech = role;
    of_speech.name_space = "speech";
    of_speech.name = "role";
    datasets.Add(std::move(of_speech));
    add("role", std::move(role));
    add("newer", {.understood = false});
    DatasetFacts videos = at("http://store/videos/");
    videos.largest_sample = 700_MiB;
    add("videos", std::move(videos));
    return datasets;
  }

 private:
  std::map<std::pair<std::string, std::string>, DatasetFacts> datasets_;
  bool synced_ = true;
};

}  // namespace optcache::webhook
