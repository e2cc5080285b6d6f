#include "sidecar/ports/stream_name.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

TEST(StreamName, PutsADatasetWithoutNamespaceIntoLocal) {
  EXPECT_EQ(QualifiedDataset("images"), "local/images");
  EXPECT_EQ(QualifiedDataset("vision/images"), "vision/images");
}

TEST(StreamName, NamesNamespaceOwnerDatasetAndLoader) {
  EXPECT_EQ(StreamName("", "vision/images", "job-7", "train"), "vision/job-7/images/train");
}

// A job of another namespace may have an owner and a loader of the same names.
TEST(StreamName, IsOfTheJobsNamespace) {
  EXPECT_EQ(StreamName("vision", "vision/images", "job-7", "train"), "vision/job-7/images/train");
  EXPECT_EQ(StreamName("speech", "vision/images", "job-7", "train"),
            "speech/job-7/vision:images/train");
}

}  // namespace
}  // namespace optcache::sidecar
