#pragma once

#include <cstdint>
#include <cstdlib>

namespace optcache {

// The seed of a randomised test: TEST_SEED, else `usual`. Say it where the test fails:
//   const std::uint64_t seed = TestSeed(991);
//   SCOPED_TRACE(testing::Message() << "TEST_SEED=" << seed);
inline std::uint64_t TestSeed(std::uint64_t usual) {
  const char* given = std::getenv("TEST_SEED");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return given == nullptr ? usual : std::strtoull(given, nullptr, 10);
}

}  // namespace optcache
