#include "cli/order/order.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"
#include "cli/order/npy.h"
#include "sampler/order_source.h"

namespace optcache::cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// What PrintOrder prints, or its error's message.
std::string Printed(const OrderRequest& request) {
  const File out(std::tmpfile(), &std::fclose);
  const Status status = PrintOrder(request, out.get());
  if (!status.ok()) return status.message();
  std::rewind(out.get());
  std::string text;
  for (int c = std::fgetc(out.get()); c != EOF; c = std::fgetc(out.get())) {
    text += static_cast<char>(c);
  }
  return text;
}

constexpr sampler::Recipe kSmall{.size = 5, .world = 2, .shuffle = false};

TEST(Order, PrintsOneIdALine) {
  EXPECT_EQ(Printed({.recipe = kSmall}), "0\n1\n2\n3\n4\n0\n");
}

TEST(Order, PrintsOneRank) {
  EXPECT_EQ(Printed({.recipe = kSmall, .rank = 1}), "1\n3\n0\n");
  EXPECT_EQ(Printed({.recipe = kSmall, .rank = 2}),
            "there is no rank 2 in a world of 2: ranks count from 0");
}

TEST(Order, SaysHowMuchMemoryItTakes) {
  const sampler::Recipe largest{.size = 4'294'967'294};
  EXPECT_TRUE(CheckOrderFits(largest, {.bytes = 33_GiB, .limited_by = "the machine"}).ok());
  const Status refused = CheckOrderFits(largest, {.bytes = 20_GiB, .limited_by = "the machine"});
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "an order of 4294967294 samples takes 32.0 GiB of memory while it is made; 20.0 GiB "
            "are left by the machine");
}

TEST(Order, PrintsMoreThanFitsItsBuffer) {
  const OrderRequest request{.recipe = {.size = 200'000, .seed = 3}, .epoch = 1};
  sampler::OrderSource source = sampler::OrderSource::Make(request.recipe).value();
  const std::vector<SampleId> ids = source.PassOrder(1).value();
  std::string expected;
  for (const SampleId id : ids)
    expected += std::to_string(id) + "\n";
  EXPECT_EQ(Printed(request), expected);
}

TEST(Order, PrintsTheCrcAlone) {
  // Python: zlib.crc32(numpy.array([1, 3, 0], dtype="<u4"))
  EXPECT_EQ(Printed({.recipe = kSmall, .rank = 1, .crc = true}), "6eff8de3\n");
}

TEST(Order, WritesAnNpyFileInsteadOfPrinting) {
  const std::string path = testing::TempDir() + "/order_test.npy";
  EXPECT_EQ(Printed({.recipe = kSmall, .rank = 0, .npy_file = path}), "");
  EXPECT_EQ(ReadFile(path, 1_KiB).value(), NpyBytes(std::vector<SampleId>{0, 2, 4}));
  std::filesystem::remove(path);
}

TEST(Order, SaysWhyItCannot) {
  EXPECT_EQ(Printed({.recipe = {.size = 0}}),
            "the dataset has size 0: give the number of its samples");
  const Status status =
      PrintOrder({.recipe = kSmall, .npy_file = "/nonexistent/order.npy"}, stdout);
  EXPECT_EQ(status.code(), Code::kNotFound);
}

TEST(Order, AFullDiskIsAnError) {
  const File full(std::fopen("/dev/full", "w"), &std::fclose);
  ASSERT_NE(full, nullptr);
  EXPECT_EQ(PrintOrder({.recipe = kSmall}, full.get()).code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace optcache::cli
