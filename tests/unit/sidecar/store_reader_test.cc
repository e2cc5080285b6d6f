#include "sidecar/fetch/store_reader.h"

#include <array>
#include <string>

#include "base/crc32c.h"
#include "base/files.h"
#include "base/log.h"
#include "dataset/manifest_builder.h"
#include "support/fake_object_store.h"
#include "support/manual_clock.h"
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

TEST(AmbientKeys, AreLeftOutForTheDatasetThatIsNamed) {
  std::vector<DatasetSource> datasets = {{.name = "vision/a"}, {.name = "vision/b"}};
  EXPECT_TRUE(LeaveOutAmbientKeys("vision/b", datasets).ok());
  EXPECT_TRUE(OpenOptionsOf(datasets[0]).ambient_keys);
  EXPECT_FALSE(OpenOptionsOf(datasets[1]).ambient_keys);
  for (const char* name : {"", "b", "vision/b=c"})
    EXPECT_EQ(LeaveOutAmbientKeys(name, datasets).code(), Code::kInvalidArgument) << name;
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

TEST(AddRates, BelongToADatasetThatIsThereAndAreAboveZero) {
  std::vector<DatasetSource> datasets = {{.name = "vision/a"}, {.name = "vision/b"}};
  EXPECT_TRUE(AddRequestRate("vision/b=12.5", datasets).ok());
  EXPECT_TRUE(AddByteRate("vision/b=2Ki", datasets).ok());
  EXPECT_EQ(datasets[0].rates.requests_per_second, 0);
  EXPECT_EQ(datasets[1].rates.requests_per_second, 12.5);
  EXPECT_EQ(datasets[1].rates.bytes_per_second, 2048);
  for (const char* text : {"vision/c=1", "vision/b", "vision/b=", "vision/b=0", "vision/b=-1",
                           "vision/b=nan", "vision/b=1e9", "vision/b=2000000", "vision/b=1x"}) {
    EXPECT_EQ(AddRequestRate(text, datasets).code(), Code::kInvalidArgument) << text;
  }
  for (const char* text : {"vision/c=1", "vision/b=", "vision/b=0", "vision/b=-1", "vision/b=1x"})
    EXPECT_EQ(AddByteRate(text, datasets).code(), Code::kInvalidArgument) << text;
}

TEST(AddPatience, BelongsToADatasetThatIsThereAndHasBounds) {
  std::vector<DatasetSource> datasets = {{.name = "vision/a"}, {.name = "vision/b"}};
  EXPECT_TRUE(AddPatience("vision/b=90s", datasets).ok());
  EXPECT_EQ(datasets[0].patience, std::chrono::minutes(10));
  EXPECT_EQ(datasets[1].patience, std::chrono::seconds(90));
  for (const char* text : {"vision/c=1m", "vision/b", "vision/b=", "vision/b=0", "vision/b=90",
                           "vision/b=25h", "vision/b=soon"}) {
    EXPECT_EQ(AddPatience(text, datasets).code(), Code::kInvalidArgument) << text;
  }
}

TEST(AddPrice, BelongsToADatasetThatIsThereAndHasBounds) {
  std::vector<DatasetSource> datasets = {{.name = "vision/a"}, {.name = "vision/b"}};
  EXPECT_TRUE(AddPricePerRequest("vision/b=0.0000004", datasets).ok());
  EXPECT_TRUE(AddPricePerGib("vision/b=0.09", datasets).ok());
  EXPECT_EQ(datasets[0].price, dataset::StorePrice{});
  EXPECT_EQ(datasets[1].price, (dataset::StorePrice{.per_request = 0.0000004, .per_gib = 0.09}));
  for (const char* text : {"vision/c=1", "vision/b", "vision/b=", "vision/b=0", "vision/b=-1",
                           "vision/b=1e-6", "vision/b=free"}) {
    EXPECT_EQ(AddPricePerRequest(text, datasets).code(), Code::kInvalidArgument) << text;
    EXPECT_EQ(AddPricePerGib(text, datasets).code(), Code::kInvalidArgument) << text;
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
    clock_.Advance(SystemClock().Now() - clock_.Now());  // the store's clock
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
    const auto end = [&](Result<std::uint32_t> crc) {
      result = std::move(crc);
      loop_.Stop();
    };
    reader_.Read(*dataset_, {.id = id, .into = into, .done = end}, {});
    loop_.Run();
    return result;
  }

  TempDir dir_;
  net::EventLoop loop_;
  FakeArena arena_{1000};
  SampleMemory memory_{arena_, 0, {}};
  std::unique_ptr<ServedDataset> dataset_;
  ManualClock clock_;
  StoreReader reader_{loop_, clock_};
};

TEST_F(StoreReaderTest, ReadsASampleAndItsChecksum) {
  const BufferRef buffer = memory_.AllocateInArena(dataset_->SizeOf(1));
  const auto crc = Read(1, buffer);
  ASSERT_TRUE(crc.has_value()) << crc.error().ToString();
  EXPECT_EQ(AsText(buffer->bytes()), "the second");
  EXPECT_EQ(*crc, Crc32c(AsBytes("the second")));
  EXPECT_EQ(reader_.Arrived(*dataset_), 10U);
  EXPECT_EQ(reader_.Requests(*dataset_), 1U);
}

TEST_F(StoreReaderTest, ItsStoresKeepToTheRatesThatItIsTold) {
  const auto limited = ServedDataset::Open({.name = "limited",
                                            .manifest_file = dir_.Join("manifest"),
                                            .store_uri = dir_.Join("data"),
                                            .rates = {.requests_per_second = 50}});
  ASSERT_TRUE(limited.has_value()) << limited.error().ToString();
  reader_.Add(**limited);
  const auto share = [this] {
    std::vector<double> found;
    reader_.VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels&, double value) {
          if (name.starts_with("optcache_store_share_")) found.push_back(value);
        });
    return found;
  };
  EXPECT_EQ(share(), std::vector<double>{50}) << "of the dataset that has a limit, and of requests";
  reader_.SetRates((*limited)->key(), {.requests = 12.5, .bytes = 7});
  EXPECT_EQ(share(), std::vector<double>{12.5});
  ASSERT_TRUE(Read(1, memory_.AllocateInArena(dataset_->SizeOf(1))).has_value());
  const std::vector<StoreUse> uses = reader_.Uses();
  ASSERT_EQ(uses.size(), 2U);
  for (const StoreUse& use : uses) {
    const bool is_limited = use.dataset == (*limited)->key();
    EXPECT_EQ(use.most, (is_limited ? StoreRate{.requests = 50} : StoreRate{}));
    EXPECT_EQ(use.requests, is_limited ? 0U : 1U);
    EXPECT_EQ(use.bytes, is_limited ? 0U : 10U);
  }
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
  SetUpLog("sidecar_test", LogLevel::kInfo, LogFormat::kText);
  testing::internal::CaptureStderr();
  const auto crc = Read(0, memory_.AllocateInArena(dataset_->SizeOf(0)));
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_FALSE(crc.has_value());
  EXPECT_EQ(crc.error().code(), Code::kDataLoss);
  EXPECT_NE(crc.error().message().find("SHA-256"), std::string::npos);
  EXPECT_NE(log.find("object=a.bin bytes=0-8 attempt=1 code=data_loss"), std::string::npos) << log;
  EXPECT_NE(log.find("object=a.bin bytes=0-8 attempt=2 code=data_loss"), std::string::npos) << log;
}

// Two samples of an archive, indexed with digests, in a store that damages them as it is told.
class DamagedSampleTest : public testing::Test {
 protected:
  void SetUp() override {
    store_->Put("s.tar", "....first..second..");
    store_->set_completes_at_once(true);
    dataset::ManifestBuilder builder(dataset::Order::kPath, {}, dataset::Layout::kMembers);
    ASSERT_TRUE(builder.AddShard({.path = "s.tar", .size = 19, .validator = {}}).ok());
    for (const auto& [offset, content] :
         {std::pair<ByteCount, std::string_view>{4, "first"}, {11, "second"}}) {
      const dataset::Member member = {.name = {}, .offset = offset, .size = content.size()};
      ASSERT_TRUE(builder
                      .Add({.path = "key-" + std::to_string(offset),
                            .validator = {},
                            .digest = dataset::Sha256Of(AsBytes(content)),
                            .members = {&member, 1}})
                      .ok());
    }
    dir_.Write("manifest", std::move(builder).Finish().value().bytes());
    std::unique_ptr<storage::ObjectStore> store(store_);
    dataset_ =
        ServedDataset::Make("two", SealedCopyOf(dir_.Join("manifest")).value(), store).value();
    reader_.Add(*dataset_);
  }
  // Both samples, by one read.
  void ReadBoth(std::array<bool, 2> keep = {}) {
    std::vector<StorePort::Part> parts;
    std::size_t ended = 0;
    for (const SampleId id : {0U, 1U}) {
      buffers_[id] = memory_.AllocateAsked(dataset_->SizeOf(id));
      const auto end = [this, id, &ended](Result<std::uint32_t> crc) {
        crcs_[id] = std::move(crc);
        if (++ended == 2) loop_.Stop();
      };
      parts.push_back({.id = id, .into = buffers_[id], .done = end, .keep = keep.at(id)});
    }
    reader_.ReadTogether(*dataset_, std::move(parts), {});
    loop_.Run();
  }
  double mismatches() const {
    double found = -1;
    reader_.VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name != "optcache_store_digest_mismatches_total") return;
          EXPECT_EQ(labels, (MetricLabels{{"dataset", "two"}}));
          found = value;
        });
    return found;
  }

  TempDir dir_;
  net::EventLoop loop_;
  FakeArena arena_{1};
  SampleMemory memory_{arena_, 1000, {}};
  storage::FakeObjectStore* const store_ = new storage::FakeObjectStore;  // the dataset's
  std::unique_ptr<ServedDataset> dataset_;
  StoreReader reader_{loop_, SystemClock()};
  std::array<BufferRef, 2> buffers_;
  std::array<Result<std::uint32_t>, 2> crcs_;
};

TEST_F(DamagedSampleTest, WhatIsRightIsReadOnce) {
  ReadBoth();
  EXPECT_EQ(crcs_[0], Crc32c(AsBytes("first")));
  EXPECT_EQ(crcs_[1], Crc32c(AsBytes("second")));
  EXPECT_EQ(store_->reads(), 1U);
  EXPECT_EQ(mismatches(), 0);
}

TEST_F(DamagedSampleTest, OtherBytesAreReadOnceMorePastCachesWithoutTheirNeighbours) {
  store_->DamageNext("s.tar", "....first..SECOND..");
  ReadBoth();
  EXPECT_EQ(crcs_[0], Crc32c(AsBytes("first")));
  EXPECT_EQ(crcs_[1], Crc32c(AsBytes("second")));
  EXPECT_EQ(AsText(buffers_[1]->bytes()), "second");
  EXPECT_EQ(store_->reads(), 2U);
  EXPECT_EQ(store_->fresh_reads(), 1U);
  EXPECT_EQ(mismatches(), 1);
}

TEST_F(DamagedSampleTest, TheStoreIsToldWhatIsKeptIfAllOfTheReadIs) {
  ReadBoth({true, false});
  EXPECT_EQ(store_->kept_reads(), 0U);
  store_->DamageNext("s.tar", "....first..SECOND..");
  ReadBoth({true, true});
  EXPECT_EQ(store_->kept_reads(), 2U) << "what is read once more is kept, too";
}

TEST_F(DamagedSampleTest, BytesThatStayOtherOnesAreRefusedByName) {
  store_->Put("s.tar", "....FIRST..second..");
  ReadBoth();
  ASSERT_FALSE(crcs_[0].has_value());
  EXPECT_EQ(crcs_[0].error().code(), Code::kDataLoss);
  EXPECT_EQ(crcs_[0].error().message(),
            "fake://: key-4 in s.tar: its SHA-256 is not the manifest's, nor was it at a second "
            "read; the object was changed or is damaged: restore it, or index the dataset again");
  EXPECT_EQ(crcs_[1], Crc32c(AsBytes("second")));
  EXPECT_EQ(store_->reads(), 2U);
  EXPECT_EQ(mismatches(), 2);
}

TEST_F(DamagedSampleTest, ASecondReadThatFailsSaysWhy) {
  store_->DamageNext("s.tar", "....FIRST..second..");
  store_->FailNext("s.tar", {});
  store_->FailNext("s.tar", {.status = {Code::kConflict, "another one now"}});
  ReadBoth();
  ASSERT_FALSE(crcs_[0].has_value());
  EXPECT_EQ(crcs_[0].error().message(), "another one now");
  EXPECT_EQ(crcs_[1], Crc32c(AsBytes("second")));
}

TEST_F(DamagedSampleTest, ASecondReadThatIsNotAcceptedEndsTheSample) {
  store_->DamageNext("s.tar", "....FIRST..second..");
  store_->set_completes_at_once(false);
  loop_.Post([this] {
    store_->set_waiting_reads_max(0);
    store_->CompleteAll();
  });
  ReadBoth();
  ASSERT_FALSE(crcs_[0].has_value());
  EXPECT_EQ(crcs_[0].error().code(), Code::kResourceExhausted);
  EXPECT_EQ(crcs_[1], Crc32c(AsBytes("second")));
}

TEST_F(StoreReaderTest, SaysWhetherItsStoresAnswer) {
  ASSERT_EQ(reader_.Health().size(), 1U);
  EXPECT_EQ(reader_.Health()[0], wire::StoreHealth{.dataset = dataset_->key()});
  ASSERT_TRUE(Read(0, memory_.AllocateInArena(dataset_->SizeOf(0))).has_value());
  EXPECT_EQ(reader_.Health()[0].state, wire::StoreState::kAnswers);
}

TEST_F(StoreReaderTest, TellsForAMinuteOfAnObjectThatHasChanged) {
  dir_.Write("data/a.bin", "longer than before");
  const auto crc = Read(0, memory_.AllocateInArena(dataset_->SizeOf(0)));
  ASSERT_FALSE(crc.has_value());
  EXPECT_EQ(crc.error().code(), Code::kConflict);
  const wire::StoreHealth changed = {
      .dataset = dataset_->key(), .state = wire::StoreState::kChanged, .cause = "a.bin"};
  clock_.Advance(StoreReader::kChangedFor - std::chrono::seconds(1));
  ASSERT_TRUE(Read(1, memory_.AllocateInArena(dataset_->SizeOf(1))).has_value());
  EXPECT_EQ(reader_.Health()[0], changed);
  clock_.Advance(std::chrono::seconds(1));
  EXPECT_EQ(reader_.Health()[0].state, wire::StoreState::kAnswers);
  EXPECT_EQ(reader_.Health()[0].cause, "");
}

TEST_F(StoreReaderTest, LetsGoOfItsBufferBeforeItCallsBack) {
  BufferRef buffer = memory_.AllocateInArena(dataset_->SizeOf(0));
  const auto end = [&](const Result<std::uint32_t>&) {
    EXPECT_EQ(arena_.slots(), 0U);
    loop_.Stop();
  };
  reader_.Read(*dataset_, {.id = 0, .into = std::move(buffer), .done = end}, {});
  loop_.Run();
}

TEST(ServedDataset, NamesTheDatasetWhoseManifestIsMissing) {
  const auto served =
      ServedDataset::Open({.name = "two", .manifest_file = "/nowhere", .store_uri = "/tmp"});
  ASSERT_FALSE(served.has_value());
  EXPECT_NE(served.error().message().find("dataset 'two'"), std::string::npos);
}

// Three samples of an archive, the last one empty.
class ShardReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_.Write("data/s.tar", "....first..second..");
    dataset::ManifestBuilder builder(dataset::Order::kPath, {}, dataset::Layout::kMembers);
    ASSERT_TRUE(builder.AddShard({.path = "s.tar", .size = 19, .validator = {}}).ok());
    for (const dataset::Member& member :
         {dataset::Member{"", 4, 5}, dataset::Member{"", 11, 6}, dataset::Member{"", 17, 0}}) {
      ASSERT_TRUE(builder
                      .Add({.path = std::to_string(member.offset),
                            .validator = {},
                            .digest = {},
                            .members = {&member, 1}})
                      .ok());
    }
    dir_.Write("manifest", std::move(builder).Finish().value().bytes());
    dataset_ = ServedDataset::Open({.name = "shards",
                                    .manifest_file = dir_.Join("manifest"),
                                    .store_uri = dir_.Join("data")})
                   .value();
    reader_.Add(*dataset_);
  }

  TempDir dir_;
  FakeArena arena_{1};
  SampleMemory memory_{arena_, 1000, {}};
  net::EventLoop loop_;
  std::unique_ptr<ServedDataset> dataset_;
  StoreReader reader_{loop_, SystemClock()};
};

TEST_F(ShardReaderTest, KnowsWhichSamplesLieTogether) {
  EXPECT_EQ(dataset_->PlaceOf(0), (StorePlace{.object = 0, .begin = 4, .end = 9}));
  EXPECT_EQ(dataset_->PlaceOf(1), (StorePlace{.object = 0, .begin = 11, .end = 17}));
  EXPECT_EQ(dataset_->PlaceOf(2), std::nullopt) << "nothing has to be read";
}

TEST_F(ShardReaderTest, KnowsWhatEachSampleAloneAsksTheStoreFor) {
  EXPECT_EQ(dataset_->StoreBytesOf(0), 5U);
  EXPECT_EQ(dataset_->StoreBytesOf(1), 6U);
  EXPECT_EQ(dataset_->StoreBytesOf(2), std::nullopt) << "nothing has to be read";
}

TEST_F(ShardReaderTest, FillsSeveralSamplesByOneRead) {
  std::vector<StorePort::Part> parts;
  std::vector<BufferRef> buffers;
  std::size_t ended = 0;
  for (const SampleId id : {0U, 1U}) {
    buffers.push_back(memory_.AllocateAsked(dataset_->SizeOf(id)));
    parts.push_back({.id = id, .into = buffers.back(), .done = [&](Result<std::uint32_t> crc) {
                       EXPECT_TRUE(crc.has_value());
                       if (++ended == 2) loop_.Stop();
                     }});
  }
  reader_.ReadTogether(*dataset_, std::move(parts), {});
  loop_.Run();
  EXPECT_EQ(AsText(buffers[0]->bytes()), "first");
  EXPECT_EQ(AsText(buffers[1]->bytes()), "second");
  EXPECT_EQ(reader_.Requests(*dataset_), 1U);
}

TEST_F(ShardReaderTest, AnEmptyMemberNeedsNoStore) {
  Result<std::uint32_t> result = 7;
  const auto end = [&](Result<std::uint32_t> crc) {
    result = std::move(crc);
    loop_.Stop();
  };
  reader_.Read(*dataset_, {.id = 2, .into = memory_.AllocateAsked(0), .done = end}, {});
  loop_.Run();
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(*result, Crc32c({}));
}

}  // namespace
}  // namespace optcache::sidecar
