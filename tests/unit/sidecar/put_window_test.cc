#include "sidecar/fetch/put_window.h"

#include "unit/sidecar/fakes.h"

namespace optcache::sidecar {
namespace {

class PutWindowTest : public testing::Test {
 protected:
  FakeNode node_;
  PutWindow window_{
      node_, {.staged_bytes = 100, .staged_samples = 3, .queued_bytes = 200, .queued_messages = 5}};
};

TEST_F(PutWindowTest, CountsWhatIsReadAndWhatWaitsToBeSent) {
  window_.Begin(40);
  EXPECT_TRUE(window_.Admits(60));
  EXPECT_FALSE(window_.Admits(61));
  node_.passed.queued = 30;
  EXPECT_TRUE(window_.Admits(30));
  EXPECT_FALSE(window_.Admits(31));
  window_.End(40);
  EXPECT_TRUE(window_.Admits(70));
}

TEST_F(PutWindowTest, CountsSamplesToo) {
  window_.Begin(1);
  node_.passed = {.queued = 1, .queued_messages = 1};
  EXPECT_TRUE(window_.Admits(1));
  window_.Begin(1);
  EXPECT_FALSE(window_.Admits(1));
}

TEST_F(PutWindowTest, OneIsAlwaysAdmitted) {
  EXPECT_TRUE(window_.Admits(4_GiB));
  window_.Begin(4_GiB);
  EXPECT_FALSE(window_.Admits(1));
}

TEST_F(PutWindowTest, NothingIsPutWhereTheConnectionIsNearItsLimit) {
  node_.passed = {.queued = 200, .queued_messages = 5};
  EXPECT_TRUE(window_.TakesPut());
  node_.passed.queued = 201;
  EXPECT_FALSE(window_.TakesPut());
  node_.passed = {.queued = 1, .queued_messages = 6};
  EXPECT_FALSE(window_.TakesPut());
}

}  // namespace
}  // namespace optcache::sidecar
