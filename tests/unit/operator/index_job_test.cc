#include "operator/reconcile/dataset/index_job.h"

#include <algorithm>
#include <iterator>

#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

using kube::Json;

constexpr const char* kDigest = "8b1f000000000001000000000000000000000000000000000000000000000000";

Json Dataset(Json spec) {
  return {{"metadata", {{"name", "imagenet"}, {"namespace", "vision"}, {"uid", "u"}}},
          {"spec", std::move(spec)}};
}

Json HttpDataset() {
  return Dataset(Json::parse(
      R"({"source": {"http": {"baseURL": "http://s/$x"}}, "include": ["*.jpg", "*.png"],
          "order": "Path", "verify": "Digest", "cache": {"capacity": "1Gi"}})"));
}

const ReconcileSettings kSettings{.name = "oc",
                                  .system_namespace = "sys",
                                  .sidecar_image = "i:1",
                                  .image_pull_secrets = {"pull"}};

const IndexMark kMark{.hash = "0123456789"};
const IndexRun kRun{.mark = kMark};

Json JobOf(const Json& dataset) {
  return BuildIndexJob(dataset, api::ParseDatasetSpec(dataset).value(), kRun, kSettings).value();
}

TEST(IndexJob, HasTheCommandLineOfTheSidecar) {
  const Json job = JobOf(HttpDataset());
  EXPECT_EQ(kube::Find(job, "/spec/template/spec/containers/0/args"),
            Json::parse(R"(["index", "--dataset", "vision/imagenet", "--source", "http://s/$$x",
                            "--listing", "index.txt", "--include", "*.jpg", "--include", "*.png",
                            "--order", "Path", "--verify", "Digest",
                            "--manifests", "https://oc-node.sys.svc:4102",
                            "--manifests", "https://oc-nodes.sys.svc:4102",
                            "--node-ca", "/etc/optcache/ca/ca.crt",
                            "--token-file", "/var/run/secrets/optcache/token"])"));
}

TEST(IndexJob, ComparesWithTheManifestOfBefore) {
  const Json dataset = HttpDataset();
  const Json job = BuildIndexJob(dataset, api::ParseDatasetSpec(dataset).value(),
                                 {.mark = kMark, .before = kDigest}, kSettings)
                       .value();
  const Json& args = kube::Find(job, "/spec/template/spec/containers/0/args");
  const auto flag = std::ranges::find(args, "--before");
  ASSERT_NE(flag, args.end());
  EXPECT_EQ(*std::next(flag), kDigest);
}

TEST(IndexJob, HasTheVariablesOfThoseThatReadSources) {
  const Json dataset = HttpDataset();
  EXPECT_FALSE(kube::Find(JobOf(dataset), "/spec/template/spec/containers/0").contains("env"));
  ReconcileSettings settings = kSettings;
  settings.source_variables =
      Json::parse(R"([{"name": "https_proxy", "value": "http://proxy:3128"}])");
  const Json job =
      BuildIndexJob(dataset, api::ParseDatasetSpec(dataset).value(), kRun, settings).value();
  EXPECT_EQ(kube::Find(job, "/spec/template/spec/containers/0/env"), settings.source_variables);
}

TEST(IndexJob, BelongsToItsDataset) {
  const Json job = JobOf(HttpDataset());
  EXPECT_EQ(kube::ControllerOf(job)->uid, "u");
  EXPECT_EQ(kube::LabelOf(job, kDatasetLabel), "imagenet");
  EXPECT_EQ(kube::Find(job, "/spec/template/metadata/labels/optcache.io~1inject"), "false");
}

TEST(IndexJob, PassesPodSecurityRestricted) {
  const Json job = JobOf(HttpDataset());
  const Json& pod = kube::Find(job, "/spec/template/spec");
  EXPECT_EQ(kube::Find(pod, "/securityContext/runAsNonRoot"), true);
  EXPECT_EQ(kube::Find(pod, "/securityContext/seccompProfile/type"), "RuntimeDefault");
  const Json& container = kube::Find(pod, "/containers/0");
  EXPECT_EQ(kube::Find(container, "/securityContext/allowPrivilegeEscalation"), false);
  EXPECT_EQ(kube::Find(container, "/securityContext/capabilities/drop"), Json::array({"ALL"}));
  EXPECT_EQ(kube::Find(container, "/resources/requests"),
            kube::Find(container, "/resources/limits"));
  EXPECT_EQ(kube::Find(pod, "/automountServiceAccountToken"), false);
  EXPECT_EQ(kube::Find(pod, "/imagePullSecrets"), Json::parse(R"([{"name": "pull"}])"));
}

TEST(IndexJob, RunsWhereAndWithWhatItIsGiven) {
  const Json dataset = HttpDataset();
  const api::DatasetSpec spec = api::ParseDatasetSpec(dataset).value();
  const Json choices = Json::parse(R"({"resources": {"limits": {"memory": "8Gi"}},
                                       "nodeSelector": {"pool": "gpu"},
                                       "tolerations": [{"operator": "Exists"}]})");
  ReconcileSettings settings = kSettings;
  settings.index_pod = ParseIndexPod(choices.dump()).value();
  const Json job = BuildIndexJob(dataset, spec, kRun, settings).value();
  const Json& pod = kube::Find(job, "/spec/template/spec");
  EXPECT_EQ(kube::Find(pod, "/containers/0/resources"), choices["resources"]);
  EXPECT_EQ(kube::Find(pod, "/nodeSelector"), choices["nodeSelector"]);
  EXPECT_EQ(kube::Find(pod, "/tolerations"), choices["tolerations"]);
}

TEST(IndexJob, ReadsAsWhomItIsGivenAndStaysRestricted) {
  const Json dataset = HttpDataset();
  const api::DatasetSpec spec = api::ParseDatasetSpec(dataset).value();
  ReconcileSettings settings = kSettings;
  settings.index_pod = ParseIndexPod(R"({"securityContext": {"runAsUser": 2000, "fsGroup": 2001,
                                            "supplementalGroups": [3000]}})")
                           .value();
  const Json job = BuildIndexJob(dataset, spec, kRun, settings).value();
  EXPECT_EQ(kube::Find(job, "/spec/template/spec/securityContext"), Json::parse(R"({
    "runAsNonRoot": true, "runAsUser": 2000, "runAsGroup": 65532, "fsGroup": 2001,
    "supplementalGroups": [3000], "seccompProfile": {"type": "RuntimeDefault"}})"));
}

TEST(IndexPod, IsNothingElse) {
  for (const char* text :
       {"", "[]", "{", R"({"affinity": {}})", R"({"resources": []})", R"({"tolerations": {}})",
        R"({"nodeSelector": "linux"})", R"({"securityContext": []})",
        R"({"securityContext": {"runAsUser": 0}})", R"({"securityContext": {"fsGroup": "1"}})",
        R"({"securityContext": {"runAsNonRoot": false}})",
        R"({"securityContext": {"supplementalGroups": 7}})"}) {
    EXPECT_EQ(ParseIndexPod(text).error().code(), Code::kInvalidArgument) << text;
  }
  EXPECT_TRUE(ParseIndexPod("{}"));
}

TEST(IndexJob, AsksForATokenThatIsForUs) {
  const Json job = JobOf(HttpDataset());
  EXPECT_EQ(kube::Find(job,
                       "/spec/template/spec/volumes/0/projected/sources/0/"
                       "serviceAccountToken/audience"),
            "optcache");
  EXPECT_EQ(kube::Find(job, "/spec/template/spec/volumes/1/configMap/name"), "optcache-ca");
}

TEST(IndexJob, MountsAClaimReadOnly) {
  const Json job = JobOf(Dataset(Json::parse(
      R"({"source": {"pvc": {"claimName": "data", "path": "train"}}, "cache": {"capacity": 1}})")));
  const Json& pod = kube::Find(job, "/spec/template/spec");
  EXPECT_EQ(kube::Find(pod, "/volumes/2/persistentVolumeClaim"),
            Json::parse(R"({"claimName": "data", "readOnly": true})"));
  EXPECT_EQ(kube::Find(pod, "/containers/0/volumeMounts/2/mountPath"), "/mnt/optcache");
  EXPECT_EQ(kube::Find(pod, "/containers/0/args/4"), "/mnt/optcache/train");
}

TEST(IndexJob, MountsTheKeysReadOnly) {
  const Json job = JobOf(Dataset(Json::parse(
      R"({"source": {"http": {"baseURL": "http://s", "secretRef": {"name": "store"}}},
          "cache": {"capacity": 1}})")));
  const Json& pod = kube::Find(job, "/spec/template/spec");
  EXPECT_EQ(kube::Find(pod, "/volumes/2/secret"),
            Json::parse(R"({"secretName": "store", "optional": true})"));
  EXPECT_EQ(
      kube::Find(pod, "/containers/0/volumeMounts/2"),
      Json::parse(R"({"name": "keys", "mountPath": "/etc/optcache/keys", "readOnly": true})"));
  EXPECT_EQ(kube::Find(pod, "/containers/0/args/7"), "--keys");
  EXPECT_EQ(kube::Find(pod, "/containers/0/args/8"), "/etc/optcache/keys");
}

TEST(IndexJob, KeepsToTheLimitsOfTheSource) {
  const Json job = JobOf(Dataset(Json::parse(
      R"({"source": {"http": {"baseURL": "http://s"}, "patience": "30m"}, "cache": {"capacity": 1},
          "limits": {"requestsPerSecond": 200, "bytesPerSecond": "1Ki"}})")));
  const auto args =
      kube::Find(job, "/spec/template/spec/containers/0/args").get<std::vector<std::string>>();
  const auto after = [&args](std::string_view flag) {
    return *std::next(std::ranges::find(args, flag));
  };
  EXPECT_EQ(after("--requests-per-second"), "200");
  EXPECT_EQ(after("--bytes-per-second"), "1024");
  EXPECT_EQ(after("--patience"), "1800s");
}

// It says nothing of what is there.
TEST(IndexJob, AnotherPatienceIsNoReasonToIndexAgain) {
  const Json before = Dataset(
      Json::parse(R"({"source": {"http": {"baseURL": "http://s"}}, "cache": {"capacity": 1}})"));
  Json after = before;
  after["spec"]["source"]["patience"] = "1h";
  EXPECT_EQ(IndexHash(before, api::ParseDatasetSpec(before).value()),
            IndexHash(after, api::ParseDatasetSpec(after).value()));
}

TEST(IndexJob, ReadsABucketWithItsKeys) {
  const Json job = JobOf(Dataset(Json::parse(
      R"({"source": {"s3": {"bucket": "b", "prefix": "p/", "secretRef": {"name": "store"}}},
          "cache": {"capacity": 1}})")));
  const Json& pod = kube::Find(job, "/spec/template/spec");
  EXPECT_EQ(kube::Find(pod, "/containers/0/args/4"), "s3://b/p/?region=us-east-1");
  EXPECT_EQ(kube::Find(pod, "/containers/0/args/5"), "--keys");
  EXPECT_EQ(kube::Find(pod, "/volumes/2/secret/secretName"), "store");
  EXPECT_EQ(kube::Find(pod, "/volumes/0/projected/sources").size(), 1U);
}

TEST(IndexJob, ShowsItsTokenWhereKeysComeForIt) {
  const Json job = JobOf(Dataset(Json::parse(
      R"({"source": {"s3": {"bucket": "b", "roleARN": "arn:aws:iam::1:role/reader"}},
          "cache": {"capacity": 1}})")));
  const Json& pod = kube::Find(job, "/spec/template/spec");
  EXPECT_EQ(kube::Find(pod, "/containers/0/args/4"),
            "s3://b/?region=us-east-1&role-arn=arn%3Aaws%3Aiam%3A%3A1%3Arole/reader"
            "&token-file=/var/run/secrets/optcache/sts-token");
  EXPECT_EQ(kube::Find(pod, "/volumes/0/projected/sources/1/serviceAccountToken"),
            Json::parse(R"({"audience": "sts.amazonaws.com", "expirationSeconds": 3600,
                            "path": "sts-token"})"));
}

TEST(IndexJob, TellsWhatTheObjectsAre) {
  for (const char* format : {"Tar", "TarFiles", "Ranges", "Npy", "Megatron"}) {
    Json spec = Json::parse(R"({"source": {"http": {"baseURL": "http://s"}},
                                "cache": {"capacity": 1}})");
    spec["format"] = format;
    const Json job = JobOf(Dataset(spec));
    const Json& args = kube::Find(job, "/spec/template/spec/containers/0/args");
    const auto flag = std::ranges::find(args, "--format");
    ASSERT_NE(flag, args.end());
    EXPECT_EQ(*std::next(flag), format);
  }
}

TEST(IndexHash, ChangesWithAllThatTheManifestDependsOn) {
  const auto hash = [](const Json& dataset) {
    return IndexHash(dataset, api::ParseDatasetSpec(dataset).value());
  };
  const std::string first = hash(HttpDataset());
  EXPECT_EQ(first.size(), 10U);
  for (const char* patch :
       {R"({"spec": {"source": {"http": {"listing": "l"}}}})",
        R"({"spec": {"source": {"http": null, "s3": {"bucket": "b", "listing": "l"}}}})",
        R"({"spec": {"source": {"http": {"secretRef": {"name": "s"}}}}})",
        R"({"spec": {"include": []}})", R"({"spec": {"order": "List"}})",
        R"({"spec": {"verify": "Checksum"}})", R"({"spec": {"format": "Tar"}})",
        R"({"spec": {"format": "TarFiles"}})", R"({"spec": {"format": "Ranges"}})",
        R"({"metadata": {"annotations": {"optcache.io/reindex": "1"}}})"}) {
    Json changed = HttpDataset();
    changed.merge_patch(Json::parse(patch));
    EXPECT_NE(hash(changed), first) << patch;
  }
  Json same = HttpDataset();
  same.merge_patch(
      Json::parse(R"({"spec": {"cache": {"capacity": "2Gi"}, "index": {"interval": "1h"}}})"));
  EXPECT_EQ(hash(same), first);
}

TEST(IndexJobName, FitsIntoALabelAndStaysApart) {
  EXPECT_EQ(IndexJobName("imagenet", kMark), "imagenet-index-0123456789");
  const IndexMark period{.hash = "0123456789", .period = 1795788000};
  EXPECT_EQ(IndexJobName("imagenet", period), "imagenet-index-0123456789-1795788000");
  const std::string longest(63, 'a');
  const std::string name = IndexJobName(longest, period);
  EXPECT_EQ(name.size(), 63U);
  EXPECT_TRUE(name.ends_with("-index-0123456789-1795788000"));
  EXPECT_NE(name, IndexJobName(longest.substr(1) + "b", period));
}

TEST(IndexJobName, EndsWithItsMark) {
  const IndexMark period{.hash = "0123456789", .period = 1795788000};
  for (const std::string& dataset :
       {std::string("imagenet"), std::string("my-index-0a"), std::string(63, 'a')}) {
    EXPECT_EQ(MarkOfJob(IndexJobName(dataset, kMark)), kMark);
    EXPECT_EQ(MarkOfJob(IndexJobName(dataset, period)), period);
  }
  EXPECT_EQ(MarkOfJob("imagenet"), IndexMark{});
}

TEST(IndexResult, IsAManifestOrAReason) {
  const auto made = ParseIndexResult(std::string(R"({"digest": ")") + kDigest +
                                     R"(", "samples": 5, "bytes": 50, "largest": 20})");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(made->ok());
  EXPECT_EQ(made->digest, kDigest);
  EXPECT_EQ(made->largest, 20U);
  EXPECT_FALSE(made->changes);
  const auto failed = ParseIndexResult(R"({"reason": "SourceUnreachable", "message": "no route"})");
  ASSERT_TRUE(failed);
  EXPECT_FALSE(failed->ok());
  EXPECT_EQ(failed->message, "no route");
}

TEST(IndexResult, ALongMessageIsCutBetweenCharacters) {
  std::string message;
  while (message.size() < 2000)
    message += "…";
  const auto failed =
      ParseIndexResult(R"({"reason": "SourceUnreachable", "message": ")" + message + R"("})");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->message, message.substr(0, 1023)) << "1024 bytes end within a character";
}

TEST(IndexResult, MaySayWhatChanged) {
  const auto made = ParseIndexResult(std::string(R"({"digest": ")") + kDigest +
                                     R"(", "samples": 5, "changes": {
      "added": {"count": 3, "first": "a\n1"}, "changed": {"count": -1}, "removed": 7}})");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->changes, (dataset::ManifestChanges{.added = {.count = 3, .first = "a?1"}}));
}

TEST(IndexResult, AReasonOfAnotherVersionIsAFailureThatNamesIt) {
  const auto failed = ParseIndexResult(R"({"reason": "SourceIsBlue", "message": "paint it"})");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->reason, "IndexFailed");
  EXPECT_EQ(failed->message, "SourceIsBlue: paint it");
}

TEST(IndexResult, TakesNothingElse) {
  for (const char* text : {"", "killed", "[]", "{}", R"({"digest": "xyz", "samples": 5})",
                           R"({"reason": "not a word"})", R"({"reason": 5})"}) {
    EXPECT_FALSE(ParseIndexResult(text)) << text;
  }
  EXPECT_FALSE(ParseIndexResult(std::string(R"({"digest": ")") + kDigest + R"(", "samples": 0})"));
  EXPECT_FALSE(ParseIndexResult(std::string(5000, ' ')));
}

}  // namespace
}  // namespace optcache::reconcile
