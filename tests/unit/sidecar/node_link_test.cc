#include "sidecar/fetch/node_link.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

// Else all sidecars of a machine would dial at the same moments when their node comes back.
TEST(NodeLink, SidecarsOfTwoNamesDoNotDialInStep) {
  EXPECT_NE(PoolOptionsOf({.name = "a"}).seed, PoolOptionsOf({.name = "b"}).seed);
}

}  // namespace
}  // namespace optcache::sidecar
