#include "sidecar/clients/client_service.h"

#include <gtest/gtest.h>

#include "dataset/manifest_builder.h"
#include "support/temp_dir.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

// While the sidecar stops, reads of the store still end, and trainers wait for what was read.
TEST(ClientService, AnswersAfterItsEndGoNowhere) {
  const auto registry = DatasetRegistry::Open({}, {}, "").value();
  ClientService desk(*registry);
  desk.Close();
  desk.Reply(1, 2, 3, {{.status = Status(Code::kCancelled, "stopping"), .buffer = nullptr}});
  desk.Refuse(1, 3, Status(Code::kCancelled, "stopping"));
}

TEST(ClientService, WhoeverOpensADatasetWhoseManifestIsAwaitedIsToldWhyToAskAgain) {
  const auto registry =
      DatasetRegistry::Open({{.name = "vision/imagenet", .store_uri = "/tmp"}}, {}, "").value();
  ClientService desk(*registry);
  const auto opened = desk.OnOpen(1, {.name = "vision/imagenet"});
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error().code(), Code::kUnavailable);
  EXPECT_EQ(opened.error().message(),
            "dataset 'vision/imagenet' is not there yet: no node was asked for its manifest yet");
}

TEST(ClientService, ADatasetThatIsNotThereHasNoHandle) {
  const auto registry =
      DatasetRegistry::Open({{.name = "vision/imagenet", .store_uri = "/tmp"}}, {}, "").value();
  ClientService desk(*registry);
  const auto attached = desk.OnAttach(1, {.dataset = 1});
  ASSERT_FALSE(attached.has_value());
  EXPECT_EQ(attached.error().code(), Code::kInvalidArgument);
}

// One read of the node's, two of peers' and three of the store's.
TEST(ClientService, CountsReadsByWhereTheirBytesCameFrom) {
  const std::vector<ByteCount> sizes = {10, 20, 30, 40, 50, 60};
  const TempDir dir;
  dataset::ManifestBuilder builder(dataset::Order::kPath, {});
  for (SampleId id = 0; id < sizes.size(); ++id)
    ASSERT_TRUE(builder.Add({.path = std::to_string(id), .size = sizes[id]}).ok());
  dir.Write("manifest", std::move(builder).Finish().value().bytes());
  const auto registry =
      DatasetRegistry::Open(
          {{.name = "images", .manifest_file = dir.Join("manifest"), .store_uri = dir.path()}}, {},
          "")
          .value();
  World world(1000, sizes);
  net::EventLoop loop;
  const handoff::Arena arena = handoff::Arena::Create(1_MiB).value();
  ClientService desk(*registry);
  ASSERT_TRUE(desk.Open(loop, world.clock, dir.Join("socket"), {}, arena, *world.feeder).ok());

  std::uint32_t request = 0;
  wire::Get get;
  world.node.on_get = [&](std::uint32_t number, const wire::Get& sent) {
    request = number;
    get = sent;
  };
  world.Ask(1, 1, {0, 1, 2, 3, 4, 5});
  world.Run();
  ASSERT_EQ(get.items.size(), sizes.size());
  world.clock.Advance(std::chrono::milliseconds(3));
  for (std::uint32_t i = 0; i < get.items.size(); ++i) {
    const SampleId id = get.items[i].id;
    const wire::SampleReply reply{.index = i,
                                  .answer = id == 0  ? wire::Answer::kHere
                                            : id < 3 ? wire::Answer::kPeer
                                                     : wire::Answer::kMissDrop};
    if (reply.answer == wire::Answer::kMissDrop) {
      world.feeder->OnAnswer(request, reply);
      continue;
    }
    ASSERT_NE(world.feeder->OnPayloadStart(request, reply, sizes[id]), nullptr);
    world.feeder->OnPayload(request, reply, OkStatus());
  }
  world.store.requests = 2;
  world.store.arrived = 170;
  world.RunStore();

  const auto counts = desk.OnReadCounts(1, {.dataset = 1});
  ASSERT_TRUE(counts.has_value()) << counts.error().ToString();
  const auto of = [](const handoff::ReadCounts::Part& part) {
    return std::pair(part.samples, part.bytes);
  };
  EXPECT_EQ(of(counts->node), std::pair(1UL, ByteCount{10}));
  EXPECT_EQ(of(counts->peers), std::pair(2UL, ByteCount{50}));
  EXPECT_EQ(of(counts->store), std::pair(3UL, ByteCount{150}));
  EXPECT_EQ(std::pair(counts->uncached_requests, counts->uncached_bytes), std::pair(6UL, 210UL));
  EXPECT_EQ(std::pair(counts->store_requests, counts->store_bytes), std::pair(2UL, 170UL));
  EXPECT_EQ(counts->wait_us, 3000U);
  EXPECT_EQ(desk.OnReadCounts(1, {.dataset = 2}).error().code(), Code::kInvalidArgument);
  desk.Close();
}

}  // namespace
}  // namespace optcache::sidecar
