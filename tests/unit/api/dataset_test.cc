#include "api/dataset.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace optcache::api {
namespace {

using Json = nlohmann::json;

Json Dataset(const std::string& spec) {
  return {{"spec", Json::parse(spec)}};
}

std::string FaultOf(const std::string& spec) {
  const auto parsed = ParseDatasetSpec(Dataset(spec));
  return parsed ? "" : std::string(parsed.error().message());
}

constexpr const char* kHttp =
    R"("source": {"http": {"baseURL": "http://s/"}}, "cache": {"capacity": "1Gi"})";

std::string WithHttp(const std::string& more) {
  return std::string("{") + kHttp + ", " + more + "}";
}

TEST(ParseDatasetSpec, ReadsEveryField) {
  const auto spec = ParseDatasetSpec(Dataset(R"({
    "source": {"pvc": {"claimName": "data", "path": "train"}, "patience": "1h30m"}, "format": "Files",
    "index": {"interval": "12h"}, "include": ["**/*.jpg"], "order": "Path", "verify": "Digest",
    "limits": {"requestsPerSecond": 200, "bytesPerSecond": "50Mi"},
    "cost": {"perRequest": "0.0000004", "perGiB": 2},
    "cache": {"capacity": "30%", "minCapacity": 100},
    "placement": {"nodeSelector": {"pool": "gpu"}, "maxNodes": 4, "schedulingPreference": "None"},
    "access": [{"namespace": "speech"}]})"));
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(std::get<ClaimSource>(spec->source).claim, "data");
  EXPECT_EQ(std::get<ClaimSource>(spec->source).path, "train");
  EXPECT_EQ(spec->patience_seconds, 5400);
  EXPECT_EQ(spec->index_interval_seconds, 43'200);
  EXPECT_EQ(spec->limits.requests_per_second, 200);
  EXPECT_EQ(spec->limits.bytes_per_second, 50U << 20);
  EXPECT_EQ(spec->price, (dataset::StorePrice{.per_request = 0.0000004, .per_gib = 2}));
  EXPECT_EQ(spec->include, std::vector<std::string>{"**/*.jpg"});
  EXPECT_EQ(spec->order, dataset::Order::kPath);
  EXPECT_EQ(spec->verify, Verify::kDigest);
  EXPECT_EQ(spec->capacity.Of(1000), 300U);
  EXPECT_EQ(spec->GuaranteedOf(1000), 100U);
  EXPECT_EQ(spec->GuaranteedOf(200), 60U);  // no more than its capacity
  EXPECT_EQ(spec->placement.node_selector.at("pool"), "gpu");
  EXPECT_EQ(spec->placement.max_nodes, 4U);
  EXPECT_EQ(spec->placement.scheduling, SchedulingPreference::kNone);
  EXPECT_EQ(spec->access, std::vector<std::string>{"speech"});
}

TEST(ParseDatasetSpec, PatienceHasBounds) {
  for (const char* text : {"600", "0s", "25h", "500ms"}) {
    const auto spec = ParseDatasetSpec(
        Dataset(std::string(R"({"source": {"http": {"baseURL": "http://s"}, "patience": ")") +
                text + R"("}, "cache": {"capacity": 1}})"));
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().message(),
              std::string("spec.source.patience: '") + text +
                  "', allowed: a span of time from 1s to 24h, written with h, m and s, for example "
                  "10m or 1h30m");
  }
}

TEST(ParseDatasetSpec, TheIntervalOfIndexingHasBounds) {
  for (const char* text : {"60", "9m", "721h", "daily"}) {
    const auto spec = ParseDatasetSpec(Dataset(
        std::string(R"({"source": {"http": {"baseURL": "http://s"}}, "index": {"interval": ")") +
        text + R"("}, "cache": {"capacity": 1}})"));
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().message(),
              std::string("spec.index.interval: '") + text +
                  "', allowed: a span of time from 10m to 720h, written with h, m and s, for "
                  "example 1h or 24h");
  }
}

TEST(ParseDatasetSpec, PricesAreDecimalNumbersAboveZero) {
  for (const char* text : {"0", "-1", "1e-6", "0.4 EUR", "1000001"}) {
    const auto spec = ParseDatasetSpec(Dataset(
        std::string(R"({"source": {"http": {"baseURL": "http://s"}}, "cost": {"perGiB": ")") +
        text + R"("}, "cache": {"capacity": 1}})"));
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().message(),
              std::string("spec.cost.perGiB: '") + text +
                  "', allowed: a decimal number above 0, at most 1000000 and of at most 32 "
                  "characters, in quotes, for example \"0.0000004\"");
  }
}

TEST(ParseDatasetSpec, HasTheDefaultsOfTheCrd) {
  const auto spec = ParseDatasetSpec(Dataset(std::string("{") + kHttp + "}"));
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(std::get<HttpSource>(spec->source).listing, "index.txt");
  EXPECT_EQ(spec->order, std::nullopt);
  EXPECT_EQ(spec->verify, Verify::kChecksum);
  EXPECT_EQ(spec->placement.scheduling, SchedulingPreference::kPreferred);
  EXPECT_EQ(spec->capacity.bytes, 1_GiB);
}

TEST(ParseDatasetSpec, ReadsABucket) {
  const auto spec = ParseDatasetSpec(Dataset(
      R"({"source": {"s3": {"bucket": "b", "prefix": "p/", "secretRef": {"name": "keys"}}},
          "cache": {"capacity": 1024}, "access": [{"namespace": "n"}]})"));
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(std::get<S3Source>(spec->source).secret, "keys");
  const auto& bucket = std::get<S3Source>(spec->source);
  EXPECT_EQ(AddressOf(bucket, "/token"), "s3://b/p/?region=us-east-1");
  EXPECT_EQ(spec->capacity.bytes, 1024U);
}

TEST(ParseDatasetSpec, ReadsHowABucketIsRead) {
  const auto spec = ParseDatasetSpec(Dataset(
      R"({"source": {"s3": {"bucket": "b", "endpoint": "https://h", "region": "r", "style": "Path",
                            "requesterPays": true, "listing": "l", "roleARN": "arn", "stsEndpoint": "http://sts"}},
          "cache": {"capacity": 1024}})"));
  ASSERT_TRUE(spec) << spec.error().message();
  const auto& bucket = std::get<S3Source>(spec->source);
  EXPECT_TRUE(bucket.web_identity());
  EXPECT_EQ(AddressOf(bucket, "/token"),
            "s3://b/?endpoint=https%3A//h&region=r&style=path&requester-pays=true&listing=l"
            "&role-arn=arn&sts-endpoint=http%3A//sts&token-file=/token");
}

TEST(ParseDatasetSpec, SaysWhatIsWrongWithABucket) {
  const auto fault = [](const std::string& fields) {
    return FaultOf(R"({"source": {"s3": {"bucket": "b", )" + fields +
                   R"(}}, "cache": {"capacity": 1}})");
  };
  EXPECT_EQ(fault(R"("style": "path")"),
            "spec.source.s3.style: 'path' is not known, allowed: Path, VirtualHost");
  EXPECT_EQ(fault(R"("endpoint": "h")"),
            "spec.source.s3.endpoint: 'h', allowed: http://… or https://…");
  EXPECT_EQ(fault(R"("roleARN": "r", "stsEndpoint": "h")"),
            "spec.source.s3.stsEndpoint: 'h', allowed: http://… or https://…");
  EXPECT_EQ(fault(R"("stsEndpoint": "https://h")"),
            "spec.source.s3.stsEndpoint: for roleARN alone, which is missing");
}

TEST(Capacity, AllOfADatasetIsAllOfIt) {
  constexpr ByteCount kOdd = 545'216'262'686'861;  // 100 % of it by doubles is one byte less
  constexpr ByteCount kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(Capacity{.percent = 100}.Of(kOdd), kOdd);
  EXPECT_EQ(Capacity{.percent = 1000}.Of(kHuge), kHuge);
  EXPECT_EQ(Capacity{.percent = 1000}.Asked(kHuge), std::numeric_limits<ByteCount>::max());
  EXPECT_EQ(Capacity{.percent = 50}.Of(1000), 500U);
}

TEST(ParseDatasetSpec, AGuaranteeIsAtMostTheCapacity) {
  const std::string source = R"("source": {"http": {"baseURL": "http://s/"}})";
  const std::string fault = "spec.cache.minCapacity: is above capacity: at most that";
  EXPECT_EQ(FaultOf("{" + source + R"(, "cache": {"capacity": "1Gi", "minCapacity": "2Gi"}})"),
            fault);
  EXPECT_EQ(FaultOf("{" + source + R"(, "cache": {"capacity": "9%", "minCapacity": "10%"}})"),
            fault);
  EXPECT_EQ(FaultOf("{" + source + R"(, "cache": {"capacity": "9%", "minCapacity": "9%"}})"), "");
  EXPECT_EQ(FaultOf("{" + source + R"(, "cache": {"capacity": "9%", "minCapacity": "9Gi"}})"), "");
  EXPECT_NE(FaultOf("{" + source + R"(, "cache": {"capacity": "9%", "minCapacity": "x"}})"), "");
}

TEST(ParseDatasetSpec, NeedsExactlyOneSource) {
  const std::string fault = "spec.source: needs exactly one of s3, http and pvc";
  EXPECT_EQ(FaultOf(R"({"cache": {"capacity": 1}})"),
            "spec.source: missing, allowed: s3, http or pvc");
  EXPECT_EQ(FaultOf(R"({"source": {}, "cache": {"capacity": 1}})"), fault);
  EXPECT_EQ(FaultOf(R"({"source": {"http": {}, "pvc": {}}, "cache": {"capacity": 1}})"), fault);
  EXPECT_NE(FaultOf(R"({"source": {"file": {"path": "/x"}}, "cache": {"capacity": 1}})")
                .find("for `optcache up` alone"),
            std::string::npos);
}

TEST(ParseDatasetSpec, NamesTheFieldOfEachFault) {
  EXPECT_EQ(FaultOf(R"({"source": {"http": {"baseURL": "ftp://s"}}})"),
            "spec.source.http.baseURL: 'ftp://s', allowed: http://… or https://…; "
            "spec.cache: missing, write cache: {capacity: 30%}");
  EXPECT_EQ(FaultOf(WithHttp(R"("order": "Random")")),
            "spec.order: 'Random' is not known, allowed: ImageFolder, Path, List");
  EXPECT_EQ(FaultOf(WithHttp(R"("placement": {"maxNodes": 0})")),
            "spec.placement.maxNodes: '0', allowed: a whole number from 1 to 100000");
  EXPECT_EQ(FaultOf(WithHttp(R"("include": ["a", 5])")), "spec.include[1]: not a string");
  for (const std::string format : {"Tar", "Ranges", "Npy", "Megatron"}) {
    EXPECT_EQ(FaultOf(WithHttp(R"("order": "ImageFolder", "format": ")" + format + '"')),
              "spec.order: ImageFolder numbers files in class folders, and this format has none");
  }
}

TEST(ParseDatasetSpec, ChecksWhoElseMayUseItAndByWhat) {
  EXPECT_EQ(FaultOf(WithHttp(R"("access": [{"namespace": "a"}, {"namespace": "a"}])")),
            "spec.access[1].namespace: named twice");
  EXPECT_EQ(FaultOf(R"({"source": {"pvc": {"claimName": "c"}}, "cache": {"capacity": 1},
                        "access": [{"namespace": "a"}]})"),
            "");
}

TEST(ParseDatasetSpec, StaysInsideTheVolume) {
  const auto with_path = [](const std::string& path) {
    return FaultOf(R"({"source": {"pvc": {"claimName": "c", "path": ")" + path +
                   R"("}}, "cache": {"capacity": 1}})");
  };
  EXPECT_EQ(with_path("a/..b"), "");
  for (const char* path : {"/a", "..", "a/../b", "a/.."})
    EXPECT_NE(with_path(path), "") << path;
}

TEST(ParseDatasetSpec, SurvivesWhateverItIsGiven) {
  for (const char* json : {"null", "5", "[]", "{}", R"({"source": []})", R"({"source": {"s3": 5}})",
                           R"({"cache": {"capacity": {}}})", R"({"access": {"a": 1}})"}) {
    EXPECT_FALSE(ParseDatasetSpec(Dataset(json))) << json;
  }
  EXPECT_FALSE(ParseDatasetSpec(Json()));
}

TEST(ParseDatasetSpec, KeepsOnlySoManyFaults) {
  std::string includes;
  for (int i = 0; i < 60; ++i)
    includes += std::string(i > 0 ? "," : "") + "1";
  const std::string fault = FaultOf(WithHttp("\"include\": [" + includes + "]"));
  EXPECT_EQ(std::ranges::count(fault, ';'), 7);
}

TEST(ParseCapacity, ReadsSharesAndQuantities) {
  EXPECT_EQ(ParseCapacity("12.5%")->Of(1000), 125U);
  EXPECT_EQ(ParseCapacity("1000%")->Of(10), 10U);
  EXPECT_EQ(ParseCapacity("500Gi")->Of(10), 10U);
  EXPECT_EQ(ParseCapacity("500Gi")->bytes, 500_GiB);
  for (const char* text : {"", "%", "0%", "-1%", "1001%", "1e2%", "nan%", "0", "5x", "1 %"})
    EXPECT_FALSE(ParseCapacity(text)) << text;
}

}  // namespace
}  // namespace optcache::api
