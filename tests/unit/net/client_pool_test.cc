#include "net/client_pool.h"

#include <set>

#include <gtest/gtest.h>

#include "unit/net/loop_fixture.h"

namespace optcache::net {
namespace {

using std::chrono::milliseconds;

class ClientPoolTest : public testing::Test {
 protected:
  static ClientPoolOptions Options(std::size_t connections = 1) {
    return {.dial = {.hello = {.role = wire::Role::kNode, .name = "node-2", .member = 2},
                     .connect_deadline = kPatience},
            .connections_per_address = connections,
            .backoff = {.first = milliseconds(1), .limit = milliseconds(8)}};
  }
  std::unique_ptr<Server> Serve(const std::string& address) {
    auto listening = Listen(loop, address, {.name = "node-1"}, node);
    EXPECT_TRUE(listening.has_value()) << listening.error().ToString();
    return std::move(*listening);
  }
  double Count(const ClientPool& pool, std::string_view wanted) {
    double found = -1;
    pool.VisitCounters([&](MetricKind, std::string_view name, const MetricLabels&, double value) {
      if (name == wanted) found = value;
    });
    return found;
  }

  EventLoop loop;
  std::shared_ptr<Recorder> node = std::make_shared<Recorder>();
  std::shared_ptr<Recorder> handler = std::make_shared<Recorder>();
};

TEST_F(ClientPoolTest, GivesNothingUntilAConnectionIsOpen) {
  const auto server = Serve("127.0.0.1:0");
  ClientPool pool(loop, Options(), handler);
  EXPECT_EQ(pool.Get(server->address()), nullptr);
  RunUntil(loop, [&] { return pool.Get(server->address()) != nullptr; });
  EXPECT_EQ(pool.Get(server->address()), handler->open.begin()->second);
  EXPECT_EQ(Count(pool, "optcache_net_open_connections"), 1);
}

TEST_F(ClientPoolTest, TakesConnectionsInTurn) {
  const auto server = Serve("127.0.0.1:0");
  ClientPool pool(loop, Options(3), handler);
  pool.Keep(server->address());
  RunUntil(loop, [&] { return handler->opened == 3; });
  std::set<Connection*> seen;
  for (int i = 0; i < 3; ++i)
    seen.insert(pool.Get(server->address()));
  EXPECT_EQ(seen.size(), 3U);
}

TEST_F(ClientPoolTest, ComesBackWhenThePeerDoes) {
  auto server = Serve("127.0.0.1:0");
  const std::string address = server->address();
  ClientPool pool(loop, Options(), handler);
  pool.Keep(address);
  RunUntil(loop, [&] { return pool.Get(address) != nullptr; });
  server.reset();
  RunUntil(loop, [&] { return handler->closed.size() == 1; });
  EXPECT_EQ(pool.Get(address), nullptr);
  RunUntil(loop, [&] { return Count(pool, "optcache_net_failed_dials_total") >= 3; });
  EXPECT_EQ(handler->closed.size(), 1U);  // Failed attempts are not told.
  server = Serve(address);
  RunUntil(loop, [&] { return pool.Get(address) != nullptr; });
  EXPECT_EQ(handler->opened, 2);
}

// Whoever refuses each connection once it is open is not dialed ten times a second for ever.
TEST_F(ClientPoolTest, WaitsLongerEachTimeForAPeerThatHangsUpAtOnce) {
  const auto server = Serve("127.0.0.1:0");
  Timer end;
  node->on_open = [&](Connection& connection) {
    end = loop.After(milliseconds(1), [&connection] {
      connection.Close(Status(Code::kPermissionDenied, "not you"));
    });
  };
  ClientPoolOptions options = Options();
  options.backoff.limit = std::chrono::hours(1);
  options.healthy_after = std::chrono::hours(1);
  ClientPool pool(loop, std::move(options), handler);
  const MonotonicTime begin = SystemClock().Now();
  pool.Keep(server->address());
  RunUntil(loop, [&] { return handler->opened == 10; });
  EXPECT_GE(SystemClock().Now() - begin, milliseconds((1 + 2 + 4 + 8 + 16 + 32 + 64 + 128) / 2));
}

// 21 waits that double would take longer than this test may.
TEST_F(ClientPoolTest, WaitsAsAtFirstForAPeerThatWasThereForAWhile) {
  const auto server = Serve("127.0.0.1:0");
  Timer end;
  handler->on_open = [&](Connection& connection) {
    end = loop.After(milliseconds(20), [&connection] { connection.Close(OkStatus()); });
  };
  ClientPoolOptions options = Options();
  options.backoff.limit = std::chrono::hours(1);
  options.healthy_after = milliseconds(1);
  ClientPool pool(loop, std::move(options), handler);
  pool.Keep(server->address());
  RunUntil(loop, [&] { return handler->opened == 23; });
}

TEST_F(ClientPoolTest, ThePoolIsWithoutAConnectionWhenItsEndIsTold) {
  auto server = Serve("127.0.0.1:0");
  const std::string address = server->address();
  ClientPool pool(loop, Options(), handler);
  pool.Keep(address);
  RunUntil(loop, [&] { return pool.Get(address) != nullptr; });
  bool told = false;
  handler->on_closed = [&](Connection&) {
    told = true;
    EXPECT_EQ(pool.Get(address), nullptr);
  };
  server.reset();
  RunUntil(loop, [&] { return told; });
}

TEST_F(ClientPoolTest, DropClosesAndForgets) {
  const auto server = Serve("127.0.0.1:0");
  ClientPool pool(loop, Options(2), handler);
  pool.Keep(server->address());
  RunUntil(loop, [&] { return handler->opened == 2; });
  pool.Drop(server->address());
  EXPECT_EQ(Count(pool, "optcache_net_open_connections"), 0);
  RunUntil(loop, [&] { return handler->closed.size() == 2 && server->open_connections() == 0; });
}

TEST_F(ClientPoolTest, AHandlerMayDropItsOwnAddress) {
  const auto server = Serve("127.0.0.1:0");
  ClientPool pool(loop, Options(), handler);
  handler->on_open = [&](Connection&) { pool.Drop(server->address()); };
  pool.Keep(server->address());
  RunUntil(loop, [&] { return handler->closed.size() == 1; });
}

TEST_F(ClientPoolTest, MayDieWhileItDials) {
  const auto server = Serve("127.0.0.1:0");
  {
    ClientPool pool(loop, Options(2), handler);
    pool.Keep(server->address());
    pool.Keep("nonsense");
  }
  bool turned = false;
  const Timer timer = loop.After(milliseconds(5), [&] { turned = true; });
  RunUntil(loop, [&] { return turned; });
  EXPECT_EQ(handler->opened, 0);
}

}  // namespace
}  // namespace optcache::net
