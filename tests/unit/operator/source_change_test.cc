#include "operator/reconcile/dataset/source_change.h"

#include <gtest/gtest.h>

namespace optcache::reconcile {
namespace {

using dataset::ManifestChanges;

TEST(SourceChange, CountsObjectsAndNamesTheFirst) {
  EXPECT_EQ(DescribeChanges({.added = {.count = 3, .first = "a/1.jpg"},
                             .changed = {.count = 1, .first = "b/2.jpg"},
                             .removed = {.count = 2, .first = "c/3.jpg"}}),
            "3 objects added (first a/1.jpg), 1 changed (first b/2.jpg), 2 gone (first c/3.jpg)");
  EXPECT_EQ(DescribeChanges({.removed = {.count = 1, .first = "c/3.jpg"}}),
            "1 object gone (first c/3.jpg)");
}

TEST(SourceChange, MayBeOfSamplesAlone) {
  EXPECT_EQ(DescribeChanges({}), "the same objects make other samples");
}

TEST(SourceChange, HasItsCountsAndItsTime) {
  const ManifestChanges changes{.added = {.count = 3, .first = "a"},
                                .changed = {.count = 1, .first = "b"},
                                .removed = {.count = 2, .first = "c"}};
  EXPECT_EQ(SourceChangeOf(changes, 1'000'000),
            (api::SourceChange{.added = 3,
                               .changed = 1,
                               .removed = 2,
                               .message = DescribeChanges(changes),
                               .at = "1970-01-12T13:46:40Z"}));
}

TEST(SourceChange, SaysWhereNothingCouldBeCompared) {
  const api::SourceChange change = SourceChangeOf(std::nullopt, 0);
  EXPECT_EQ(change.added, 0U);
  EXPECT_EQ(change.message, "it is not known what changed: the earlier list was not compared");
}

}  // namespace
}  // namespace optcache::reconcile
