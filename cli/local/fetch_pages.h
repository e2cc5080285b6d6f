#pragma once

// Pages that the parts of a running cache serve.

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace optcache::cli {

struct FetchedPage {
  std::string text;
  MonotonicTime at{};  // when it came
};

// The pages at `urls`, in their order, or why one could not be had. Asks for all at once, and waits
// for `patience` at most. A page of more than 16 MiB is an error.
std::vector<Result<FetchedPage>> FetchPages(const std::vector<std::string>& urls,
                                            Duration patience);

}  // namespace optcache::cli
