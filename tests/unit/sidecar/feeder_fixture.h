#pragma once

// A core with a small arena.

#include <string_view>
#include <vector>

#include "sidecar/clients/feeder.h"
#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {

inline std::vector<SampleId> Part(const std::vector<SampleId>& order, std::size_t first,
                                  std::size_t n) {
  return {order.begin() + static_cast<std::ptrdiff_t>(first),
          order.begin() + static_cast<std::ptrdiff_t>(first + n)};
}

// 40 samples of 100 bytes, an arena for ten of them, no node.
class FeederTest : public testing::Test {
 protected:
  FeederTest() { world_.node.up = false; }
  std::vector<SampleId> Reading() {
    std::vector<SampleId> ids;
    for (const auto& read : world_.store.pending)
      ids.push_back(read.id);
    return ids;
  }
  const FakeClients::Answer& Answer(std::size_t i) { return world_.clients.answers.at(i); }
  double Counter(std::string_view wanted, std::string_view label = "") {
    double found = -1;
    world_.feeder->VisitCounters(
        [&](MetricKind, std::string_view name, const MetricLabels& labels, double value) {
          if (name == wanted && (label.empty() || labels.front().second == label)) found = value;
        });
    return found;
  }

  World world_{1000, std::vector<ByteCount>(40, 100), {.overflow_bytes = 2000}};
};

}  // namespace optcache::sidecar
