#include "sidecar/client_desk.h"

#include <gtest/gtest.h>

namespace optcache::sidecar {
namespace {

// While the sidecar stops, reads of the store still end, and trainers wait for what was read.
TEST(ClientDesk, AnswersAfterItsEndGoNowhere) {
  ClientDesk desk({});
  desk.Close();
  desk.Reply(1, 2, 3, {{.status = Status(Code::kCancelled, "stopping"), .buffer = nullptr}});
  desk.Refuse(1, 3, Status(Code::kCancelled, "stopping"));
}

}  // namespace
}  // namespace optcache::sidecar
