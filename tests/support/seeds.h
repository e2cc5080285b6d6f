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

// May a test take minutes? OPTCACHE_LONG=1, which `./dev test --long` sets.
inline bool LongTests() {
  const char* given = std::getenv("OPTCACHE_LONG");  // NOLINT(concurrency-mt-unsafe): as above
  return given != nullptr && *given == '1';
}

}  // namespace optcache
