#include "cli/cluster/kubectl.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

class KubectlTest : public testing::Test {
 protected:
  // A kubectl that does what `script` says.
  Kubectl That(const std::string& script, KubectlOptions options = {}) {
    options.program = dir_.path() + "/kubectl";
    EXPECT_TRUE(WriteFileAtomically(options.program, "#!/bin/sh\n" + script).ok());
    EXPECT_EQ(::chmod(options.program.c_str(), 0700), 0);
    return Kubectl(options);
  }
  TempDir dir_;
};

TEST_F(KubectlTest, ReturnsWhatItPrintsAndPassesOnTheOptions) {
  const auto out = That("echo \"$@\"", {.context = "c", .kubeconfig = "/k"}).Run({"get", "pods"});
  ASSERT_TRUE(out) << out.error().message();
  EXPECT_EQ(*out, "--context=c --kubeconfig=/k get pods\n");
}

TEST_F(KubectlTest, TellsErrorsByWhatItSays) {
  const struct {
    const char* said;
    Code code;
  } cases[] = {{"Error from server (NotFound): pods \\\"x\\\" not found", Code::kNotFound},
               {"Error from server (Forbidden): no", Code::kPermissionDenied},
               {"Unable to connect to the server", Code::kUnavailable}};
  for (const auto& [said, code] : cases) {
    const auto out = That(std::string("echo \"") + said + "\" >&2; exit 1").Run({});
    ASSERT_FALSE(out);
    EXPECT_EQ(out.error().code(), code) << said;
  }
}

TEST_F(KubectlTest, SaysInALineThatThereIsNoCluster) {
  const auto out =
      That(
          "echo 'E1123 memcache.go:265] couldn'\\''t get current server API group list' >&2\n"
          "echo 'The connection to the server localhost:8080 was refused - did you specify the "
          "right host or port?' >&2\nexit 1")
          .Run({});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code(), Code::kUnavailable);
  EXPECT_TRUE(out.error().message().starts_with("kubectl reaches no cluster: check --context"));
  EXPECT_EQ(out.error().message().find("memcache"), std::string::npos) << out.error().message();
  EXPECT_EQ(out.error().message().find('\n'), std::string::npos);
}

TEST_F(KubectlTest, EndsOneThatHangsOrPrintsWithoutEnd) {
  const auto hung = That("exec sleep 100", {.timeout = std::chrono::milliseconds(200)}).Run({});
  ASSERT_FALSE(hung);
  EXPECT_EQ(hung.error().code(), Code::kDeadlineExceeded);
  const auto endless = That("exec yes", {.max_output = 100'000}).Run({});
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code(), Code::kResourceExhausted);
}

TEST(Kubectl, SaysThatThereIsNone) {
  const auto out = Kubectl({.program = "/no/such/kubectl"}).Run({});
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code(), Code::kNotFound);
  EXPECT_EQ(out.error().message(), "/no/such/kubectl is not installed, or not in the PATH");
}

}  // namespace
}  // namespace optcache::cli
