#include "net/tls_files.h"

#include <filesystem>

#include "support/temp_dir.h"
#include "support/test_ca.h"
#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class TlsFilesTest : public testing::Test {
 protected:
  // As a volume of Kubernetes: the files are links into a folder that is itself a link.
  void Mount(const std::string& version, const TlsMaterial& material) {
    dir.Write(version + "/tls.crt", material.chain);
    dir.Write(version + "/tls.key", material.key);
    dir.Write(version + "/ca.crt", material.trust);
    std::filesystem::create_directory_symlink(version, dir.Join("..next"));
    std::filesystem::rename(dir.Join("..next"), dir.Join("..data"));
    for (const char* const name : {"tls.crt", "tls.key", "ca.crt"}) {
      if (std::filesystem::is_symlink(dir.Join(name))) continue;
      std::filesystem::create_symlink(std::string("..data/") + name, dir.Join(name));
    }
  }

  EventLoop loop;
  TempDir dir;
  TestCa ca;
  TlsPaths paths = {
      .chain = dir.Join("tls.crt"), .key = dir.Join("tls.key"), .trust = dir.Join("ca.crt")};
  std::shared_ptr<TlsContext> context =
      std::make_shared<TlsContext>(TlsRole::kServer, ClientCertificate::kRequired);
};

TEST_F(TlsFilesTest, AreReadAtOnce) {
  const TlsMaterial material = ca.Leaf({"a"});
  Mount("..v1", material);
  const TlsFiles files(loop, paths, context, hours(1));
  EXPECT_TRUE(files.status().ok());
  ASSERT_TRUE(context->ready());
  EXPECT_EQ(*context->material(), material);
}

TEST_F(TlsFilesTest, AreReadAgainWhenTheyChange) {
  Mount("..v1", ca.Leaf({"a"}));
  const TlsFiles files(loop, paths, context, milliseconds(5));
  const TlsMaterial next = ca.Leaf({"b"});
  Mount("..v2", next);
  RunUntil(loop, [&] { return *context->material() == next; });
}

TEST_F(TlsFilesTest, MayComeLater) {
  TlsFiles files(loop, paths, context, hours(1));
  EXPECT_EQ(files.status().code(), Code::kNotFound) << files.status().message();
  EXPECT_NE(files.status().message().find("tls.crt"), std::string::npos);
  EXPECT_FALSE(context->ready());
  Mount("..v1", ca.Leaf({"a"}));
  files.Check();
  EXPECT_TRUE(files.status().ok());
  EXPECT_TRUE(context->ready());
}

TEST_F(TlsFilesTest, BadOnesLeaveTheOldInUse) {
  const TlsMaterial good = ca.Leaf({"a"});
  Mount("..v1", good);
  TlsFiles files(loop, paths, context, hours(1));
  TlsMaterial bad = ca.Leaf({"b"});
  bad.key = good.key;
  Mount("..v2", bad);
  files.Check();
  EXPECT_EQ(files.status().code(), Code::kInvalidArgument);
  EXPECT_EQ(*context->material(), good);
  const Status told = files.status();
  files.Check();
  EXPECT_EQ(files.status().message(), told.message());  // still bad
  Mount("..v3", ca.Leaf({"c"}));
  files.Check();
  EXPECT_TRUE(files.status().ok());
}

TEST_F(TlsFilesTest, ThatDoNotChangeAreNotPutInUseAgain) {
  Mount("..v1", ca.Leaf({"a"}));
  TlsFiles files(loop, paths, context, hours(1));
  const auto before = context->material();
  files.Check();
  EXPECT_EQ(context->material(), before);
}

TEST_F(TlsFilesTest, AClientMayNameItsBundleAlone) {
  Mount("..v1", ca.Leaf({"a"}));
  const auto client = std::make_shared<TlsContext>(TlsRole::kClient);
  const TlsFiles files(loop, {.trust = paths.trust}, client, hours(1));
  EXPECT_TRUE(files.status().ok());
  EXPECT_EQ(client->material()->trust, ca.pem());
  EXPECT_EQ(client->material()->chain, "");
}

}  // namespace
}  // namespace optcache::net
