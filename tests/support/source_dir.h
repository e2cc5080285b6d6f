#pragma once

#include <string>

namespace optcache {

// Where a file or folder of the repository is on the machine that built this test:
// "docs/metrics.md". A function, and not a macro of each test, so that what compiles is the same in
// every checkout.
std::string InRepository(const std::string& path);

}  // namespace optcache
