#include "sidecar/store_reader.h"

#include "base/crc32c.h"
#include "base/files.h"
#include "dataset/manifest_builder.h"
#include "support/temp_dir.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

TEST(ParseDatasetSource, TakesNameManifestAndAddress) {
  const auto source = ParseDatasetSource("images=/m/images.manifest=http://store/a?b=c");
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->name, "images");
  EXPECT_EQ(source->manifest_file, "/m/images.manifest");
  EXPECT_EQ(source->store_uri, "http://store/a?b=c");
}

TEST(ParseDatasetSource, WithoutAFileTheManifestIsTheNodes) {
  const auto source = ParseDatasetSource("vision/imagenet==http://store/a?b==c");
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ(source->name, "vision/imagenet");
  EXPECT_EQ(source->manifest_file, "");
  EXPECT_EQ(source->store_uri, "http://store/a?b==c");
}

TEST(AddKeys, BelongToADatasetThatIsThere) {
  std::vector<DatasetSource> datasets = {{.name = "vision/a"}, {.name = "vision/b"}};
  EXPECT_TRUE(AddKeys("vision/b=/keys/x=y", datasets).ok());
  EXPECT_EQ(datasets[0].keys_folder, "");
  EXPECT_EQ(datasets[1].keys_folder, "/keys/x=y");
  for (const char* text : {"", "vision/b", "vision/b=", "=/keys", "vision/c=/keys"}) {
    EXPECT_EQ(AddKeys(text, datasets).code(), Code::kInvalidArgument) << text;
  }
}

TEST(ParseDatasetSource, RepeatsTheFormToWhoeverMissesIt) {
  for (const char* text : {"images", "images=file", "=m=s", "a==", "a=m="}) {
    const auto source = ParseDatasetSource(text);
    ASSERT_FALSE(source.has_value()) << text;
    EXPECT_NE(source.error().message().find("NAME=MANIFEST_FILE=STORE_URI"), std::string::npos);
  }
}

// Two files of a folder, indexed with digests.
class StoreReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_.Write("data/a.bin", "the first");
    dir_.Write("data/b.bin", "the second");
    dataset::ManifestBuilder builder(dataset::Order::kPath, {});
    for (const auto& [path, content] :
         {std::pair<std::string_view, std::string_view>{"a.bin", "the first"},
          {"b.bin", "the second"}}) {
      ASSERT_TRUE(builder
                      .Add({.path = path,
                            .size = content.size(),
                            .digest = dataset::Sha256Of(AsBytes(content))})
                      .ok());
    }
    const auto manifest = std::move(builder).Finish();
    ASSERT_TRUE(manifest.has_value());
    dir_.Write("manifest", manifest->bytes());
    auto served = ServedDataset::Open(
        {.name = "two", .manifest_file = dir_.Join("manifest"), .store_uri = dir_.Join("data")});
    ASSERT_TRUE(served.has_value()) << served.error().ToString();
    dataset_ = std::move(*served);
    reader_.Add(*dataset_);
  }
  Result<std::uint32_t> Read(SampleId id, const BufferRef& into) {
    Result<std::uint32_t> result = 0;
    reader_.Read(*dataset_, id, into, [&](Result<std::uint32_t> crc) {
      result = std::move(crc);
      loop_.Stop();
    });
    loop_.Run();
    return result;
  }

  TempDir dir_;
  net::EventLoop loop_;
  FakeArena arena_{1000};
  SampleMemory memory_{arena_, 0, {}};
  std::unique_ptr<ServedDataset> dataset_;
  StoreReader reader_{loop_, SystemClock()};
};

TEST_F(StoreReaderTest, ReadsASampleAndItsChecksum) {
  const BufferRef buffer = memory_.AllocateInArena(dataset_->SizeOf(1));
  const auto crc = Read(1, buffer);
  ASSERT_TRUE(crc.has_value()) << crc.error().ToString();
  EXPECT_EQ(AsText(buffer->bytes()), "the second");
  EXPECT_EQ(*crc, Crc32c(AsBytes("the second")));
}

TEST_F(StoreReaderTest, NamesTheObjectThatIsMissing) {
  std::filesystem::remove(dir_.Join("data/a.bin"));
  const auto crc = Read(0, memory_.AllocateInArena(dataset_->SizeOf(0)));
  ASSERT_FALSE(crc.has_value());
  EXPECT_EQ(crc.error().code(), Code::kNotFound);
  EXPECT_NE(crc.error().message().find("a.bin"), std::string::npos);
}

TEST_F(StoreReaderTest, RefusesBytesThatAreNotTheManifests) {
  dir_.Write("data/a.bin", "THE FIRST");
  const auto crc = Read(0, memory_.AllocateInArena(dataset_->SizeOf(0)));
  ASSERT_FALSE(crc.has_value());
  EXPECT_EQ(crc.error().code(), Code::kDataLoss);
  EXPECT_NE(crc.error().message().find("SHA-256"), std::string::npos);
}

TEST_F(StoreReaderTest, LetsGoOfItsBufferBeforeItCallsBack) {
  BufferRef buffer = memory_.AllocateInArena(dataset_->SizeOf(0));
  reader_.Read(*dataset_, 0, std::move(buffer), [&](const Result<std::uint32_t>&) {
    EXPECT_EQ(arena_.slots(), 0U);
    loop_.Stop();
  });
  loop_.Run();
}

TEST(ServedDataset, NamesTheDatasetWhoseManifestIsMissing) {
  const auto served =
      ServedDataset::Open({.name = "two", .manifest_file = "/nowhere", .store_uri = "/tmp"});
  ASSERT_FALSE(served.has_value());
  EXPECT_NE(served.error().message().find("dataset 'two'"), std::string::npos);
}

}  // namespace
}  // namespace optcache::sidecar
