#include "config/dlc_pod.h"

#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace optcache::config {
namespace {

constexpr std::string_view kPod = R"(apiVersion: docgroup.com/v1alpha1
kind: DLCPod
metadata: {name: imagenet, namespace: vision}
spec:
  secret: {name: keys}
  jobs:
  - name: job
    image: example.com/train:1
    command: [python3, train.py]
    tty: true
    datasource:
      name: images
      bucket: photos
      keys: {train: {samples: [a/, b/]}}
    qos: {usecache: true}
)";

std::string With(std::string_view piece, std::string_view by) {
  std::string out(kPod);
  const std::size_t at = out.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return out.replace(at, piece.size(), by);
}

std::string DlcErrorOf(std::string_view text) {
  const auto pods = ParseDlcPods(text, "pod.yaml");
  if (pods) return "none";
  EXPECT_EQ(pods.error().code(), Code::kInvalidArgument);
  return pods.error().message();
}

// `kubectl get -o yaml` prints the object that was applied in an annotation.
TEST(ParseDlcPods, AnAnnotationMayBeLong) {
  const std::string applied(20'000, 'x');
  const auto pods = ParseDlcPods(
      With("namespace: vision}", "namespace: vision, annotations: {applied: " + applied + "}}"),
      "pod.yaml");
  ASSERT_TRUE(pods) << pods.error().message();
  EXPECT_EQ(pods->front().annotations.at("applied"), applied);
}

TEST(DlcPod, IsReadWithItsDefaults) {
  const auto pods = ParseDlcPods(kPod, "pod.yaml");
  ASSERT_TRUE(pods.has_value()) << pods.error().ToString();
  const DlcPod& pod = pods->at(0);
  EXPECT_EQ(pod.name, "imagenet");
  EXPECT_EQ(pod.name_space, "vision");
  EXPECT_EQ(pod.secret, "keys");
  const DlcJob& job = pod.jobs.at(0);
  EXPECT_EQ(job.bucket, "photos");
  EXPECT_EQ(job.keys[0].samples, (std::vector<std::string>{"a/", "b/"}));
  EXPECT_EQ(job.use_cache, true);
  EXPECT_FALSE(job.lazy_loading);
  ASSERT_EQ(job.container.size(), 3U);
  EXPECT_EQ(job.container[0].first, "image");
  EXPECT_EQ(job.container[1].first, "command");
  EXPECT_EQ(job.container[2].first, "tty");
}

TEST(DlcPod, TakesSeveralInAFile) {
  const auto pods = ParseDlcPods(std::string(kPod) + "---\n" + std::string(kPod), "pod.yaml");
  ASSERT_TRUE(pods.has_value());
  EXPECT_EQ(pods->size(), 2U);
}

TEST(DlcPod, UnknownFieldsAreRefusedWithTheirLine) {
  EXPECT_EQ(DlcErrorOf(With("usecache: true", "usecache: true, maxmemorymill: 9")),
            "pod.yaml:15: spec.jobs[0].qos.maxmemorymill is not known, allowed: usecache, "
            "lazyloading, MaxPartMill");
  EXPECT_TRUE(DlcErrorOf(With("    tty: true", "    gpus: 2"))
                  .starts_with("pod.yaml:10: spec.jobs[0].gpus is not known"));
  EXPECT_TRUE(DlcErrorOf(With("train: {", "trian: {"))
                  .starts_with("pod.yaml:14: spec.jobs[0].datasource.keys.trian is not known"));
  EXPECT_TRUE(DlcErrorOf(With("secret: {name: keys}", "hostNetwork: true"))
                  .starts_with("pod.yaml:5: spec.hostNetwork is not known"));
  EXPECT_TRUE(DlcErrorOf(With("metadata: {", "meta: 1\nmetadata: {"))
                  .starts_with("pod.yaml:3: meta is not known"));
  EXPECT_TRUE(DlcErrorOf(With("namespace: vision", "space: 1"))
                  .starts_with("pod.yaml:3: metadata.space is not known"));
}

TEST(DlcPod, AnotherKindIsNamed) {
  EXPECT_EQ(DlcErrorOf(With("kind: DLCPod", "kind: DLTPod")),
            "pod.yaml:2: kind: 'DLTPod' is not known, allowed: DLCPod");
  EXPECT_EQ(DlcErrorOf(With("v1alpha1", "v1")),
            "pod.yaml:1: apiVersion: 'docgroup.com/v1' is not known, allowed: "
            "docgroup.com/v1alpha1");
}

TEST(DlcPod, WrongTypesAndMissingFieldsAreNamed) {
  const std::pair<std::string, std::string> cases[] = {
      {With("name: imagenet", "name: Image_Net"), "3: metadata.name: 'Image_Net'"},
      {With("name: keys", "name: [keys]"), "5: spec.secret.name: a list or mapping"},
      {With("- name: job", "- name: My Job"), "7: spec.jobs[0].name: 'My Job'"},
      {With("- name: job\n    image: example.com/train:1\n", "- name: job\n"),
       "7: spec.jobs[0].image: missing or empty"},
      {With("command: [python3, train.py]", "command: python3 train.py"),
       "9: spec.jobs[0].command: not a list"},
      {With("tty: true", "tty: 1"), "10: spec.jobs[0].tty: '1' is not known"},
      {With("tty: true", "resources: [1]"), "10: spec.jobs[0].resources: not a mapping"},
      {With("tty: true", "env: !!seq [1]"), "10: spec.jobs[0].env: a tag"},
      {With("tty: true", "env: [!secret x]"), "10: spec.jobs[0].env[0]: a tag (!secret)"},
      {With("tty: true", "resources: {a: 1, a: 2}"), "10: spec.jobs[0].resources.a is written"},
      {With("tty: true", "resources: {[a]: 1}"), "10: spec.jobs[0].resources: a key is not a word"},
      {With("bucket: photos", "etag: x"), "12: spec.jobs[0].datasource.bucket: missing or empty"},
      {With("usecache: true", "usecache: maybe"), "15: spec.jobs[0].qos.usecache: 'maybe'"},
      {With("usecache: true", "MaxPartMill: lots"), "15: spec.jobs[0].qos.MaxPartMill: 'lots'"},
      {With("samples: [a/, b/]", "samples: a/"),
       "14: spec.jobs[0].datasource.keys.train.samples: not a list"},
  };
  for (const auto& [text, error] : cases) {
    EXPECT_TRUE(DlcErrorOf(text).starts_with("pod.yaml:" + error)) << error << "\n"
                                                                   << DlcErrorOf(text);
  }
  const std::string text(kPod);
  EXPECT_EQ(DlcErrorOf(text.substr(0, text.find("  jobs:"))),
            "pod.yaml:5: spec.jobs: missing or empty, write a job at least");
}

TEST(DlcPod, HostileTextIsRefused) {
  EXPECT_EQ(DlcErrorOf(""), "pod.yaml: empty, allowed: DLCPod");
  EXPECT_EQ(DlcErrorOf("[1]"), "pod.yaml:1: document: not a mapping, allowed: {key: value}");
  EXPECT_NE(DlcErrorOf("{").find("not YAML"), std::string::npos);
  EXPECT_NE(DlcErrorOf("a: &a [x, x]\nb: [*a, *a]\n").find("anchors and aliases"),
            std::string::npos);
  EXPECT_NE(DlcErrorOf(With("tty: true", "env: " + std::string(64, '[') + std::string(64, ']')))
                .find("nested more than 32 deep"),
            std::string::npos);
  EXPECT_NE(DlcErrorOf(std::string(2_MiB, ' ')).find("larger than 1.00 MiB"), std::string::npos);
  EXPECT_EQ(DlcErrorOf("a: \xff"), "pod.yaml: not UTF-8");
  EXPECT_NE(DlcErrorOf(std::string_view("a: \0", 4)).find("not a text file"), std::string::npos);
}

}  // namespace
}  // namespace optcache::config
