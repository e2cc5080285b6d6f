#include "cli/up/local_cluster.h"

#include <fcntl.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/unique_fd.h"
#include "net/http_server.h"
#include "support/temp_dir.h"

namespace optcache::cli {
namespace {

// Without datasets, and with an address that is taken: no machine is started.
class LocalClusterTest : public testing::Test {
 protected:
  Status Start(std::uint16_t port) {
    LocalCluster cluster(*state, {}, nowhere.get());
    LocalOptions options;
    options.port = port;
    return cluster.Start(options);
  }
  std::unique_ptr<net::HttpServer> Listen(const std::string& address) {
    auto listening = net::ListenHttp(loop, address, {}, {});
    EXPECT_TRUE(listening) << listening.error().ToString();
    return *std::move(listening);
  }

  const TempDir folder;
  const Result<StateDir> state = StateDir::Open(folder.Join("state"), "optcache up");
  const UniqueFd nowhere{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
  net::EventLoop loop;
};

TEST_F(LocalClusterTest, APortInUseIsNamed) {
  const auto other = Listen("127.0.0.1:0");
  const Status status = Start(other->port());
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(status.message().starts_with("port " + std::to_string(other->port()) + " is in use"))
      << status.message();
}

TEST_F(LocalClusterTest, ASocketInUseIsNotCalledAPort) {
  const Result<std::string> run = state->PrivateSubfolder("run");
  ASSERT_TRUE(run) << run.error().ToString();
  const auto other = Listen("unix:" + *run + "/coordinator.sock");
  const Status status = Start(0);
  EXPECT_EQ(status.code(), Code::kConflict);
  EXPECT_TRUE(status.message().starts_with("listen on unix:" + *run + "/coordinator.sock: "))
      << status.message();
}

TEST_F(LocalClusterTest, ADatasetOfEmptySamplesHasNoShare) {
  const std::string images = folder.Join("images");
  std::filesystem::create_directory(images);
  ASSERT_TRUE(WriteFileAtomically(images + "/a.jpg", "").ok());
  const std::string file = folder.Join("images.yaml");
  ASSERT_TRUE(WriteFileAtomically(file,
                                  "apiVersion: optcache.io/v1alpha1\n"
                                  "kind: Dataset\n"
                                  "metadata: {name: images}\n"
                                  "spec:\n"
                                  "  source: {file: {path: " +
                                      images +
                                      "}}\n"
                                      "  order: Path\n"
                                      "  cache: {capacity: 30%}\n")
                  .ok());
  std::vector<std::string> said;
  LocalOptions options;
  options.files = {file};
  const auto datasets =
      SetUpDatasets(options, *state, [&](const std::string& line) { said.push_back(line); });
  ASSERT_TRUE(datasets) << datasets.error().ToString();
  EXPECT_THAT(said, testing::Contains("default/images: 1 samples, 0 B, capacity 0 B"));
}

}  // namespace
}  // namespace optcache::cli
