#include "simulation/trace_file.h"

#include <string>

#include <gtest/gtest.h>

namespace optcache::simulation {
namespace {

std::string Record(std::uint64_t id, std::uint32_t size) {
  std::string bytes(4, '\1');
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(id >> (8 * i) & 0xffU);
  for (int i = 0; i < 4; ++i)
    bytes += static_cast<char>(size >> (8 * i) & 0xffU);
  return bytes + std::string(8, '\xff');
}

Result<Trace> ParseRecords(const std::string& bytes) {
  return ParseOracleGeneral(AsBytes(bytes));
}

TEST(IdTrace, NumbersSamplesByTheirFirstRead) {
  const Trace trace = *ParseIdTrace("70\n# comment\n 5 # another\r\n\n18446744073709551615\n5");
  EXPECT_EQ(trace.reads, (std::vector<SampleId>{0, 1, 2, 1}));
  EXPECT_EQ(trace.samples, 3U);
  EXPECT_TRUE(trace.sizes.empty());
}

TEST(IdTrace, NamesTheLineThatIsWrong) {
  for (const std::string line : {"-1", "x", "1 2", "18446744073709551616", "1.5"}) {
    const Status status = ParseIdTrace("7\n" + line + "\n").error();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("line 2"), std::string::npos) << status.message();
  }
  EXPECT_EQ(ParseIdTrace("# nothing\n").error().code(), Code::kInvalidArgument);
}

TEST(OracleGeneral, HasIdsAndTheSizesFirstSeen) {
  const Trace trace = *ParseRecords(Record(~0ULL, 100) + Record(3, 7) + Record(~0ULL, 200));
  EXPECT_EQ(trace.reads, (std::vector<SampleId>{0, 1, 0}));
  EXPECT_EQ(trace.sizes, (std::vector<std::uint32_t>{100, 7}));
  EXPECT_EQ(trace.samples, 2U);
}

TEST(OracleGeneral, RefusesWhatIsCutEmptyOrSomethingElse) {
  for (const std::string& bytes :
       {std::string(), Record(1, 1).substr(1), Record(1, 0), Record(1, 1) + "x"}) {
    EXPECT_EQ(ParseRecords(bytes).error().code(), Code::kInvalidArgument);
  }
}

TEST(Traces, SayHowToReadWhatIsCompressed) {
  const std::string zstd = "\x28\xb5\x2f\xfd" + std::string(20, '\0');
  EXPECT_NE(ParseRecords(zstd).error().message().find("zstd -d"), std::string::npos);
  EXPECT_NE(ParseIdTrace(zstd).error().message().find("zstd -d"), std::string::npos);
}

}  // namespace
}  // namespace optcache::simulation
