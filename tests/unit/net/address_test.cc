#include "net/address.h"

#include <gtest/gtest.h>

namespace optcache::net {
namespace {

TEST(Address, ReadsHostsNumbersAndPaths) {
  EXPECT_EQ(ParseAddress("localhost:80"), (Address{.host = "localhost", .port = 80}));
  EXPECT_EQ(ParseAddress("0.0.0.0:0"), (Address{.host = "0.0.0.0", .port = 0}));
  EXPECT_EQ(ParseAddress("[::1]:65535"), (Address{.host = "::1", .port = 65535}));
  EXPECT_EQ(ParseAddress("unix:/run/node.sock"), (Address{.path = "/run/node.sock"}));
}

TEST(Address, WritesThemBack) {
  for (const char* text : {"localhost:80", "[::1]:4123", "unix:/run/node.sock"}) {
    EXPECT_EQ(FormatAddress(*ParseAddress(text)), text);
  }
}

TEST(Address, KnowsThePathOfAUnixSocket) {
  EXPECT_EQ(UnixPathOf("unix:/run/node.sock"), "/run/node.sock");
  for (const char* text : {"", "/run/node.sock", "http://localhost:80", "unix:"})
    EXPECT_EQ(UnixPathOf(text), "") << text;
}

TEST(Address, ANumberAloneGetsAPort) {
  EXPECT_EQ(WithPort("10.0.0.7", 4100), "10.0.0.7:4100");
  EXPECT_EQ(WithPort("fd00::7", 4100), "[fd00::7]:4100");
  for (const char* text : {"", "10.0.0.7:1", "[fd00::7]:1", "node-0", "node-0:1", "[fd00::7]"}) {
    EXPECT_EQ(WithPort(text, 4100), text);
  }
}

TEST(Address, RefusesTheRestWithASentence) {
  for (const std::string& text :
       {std::string(""), std::string("host"), std::string(":80"), std::string("host:"),
        std::string("host:65536"), std::string("host:8x"), std::string("::1:80"),
        std::string("unix:"), "unix:/" + std::string(200, 'a')}) {
    const auto address = ParseAddress(text);
    ASSERT_FALSE(address.has_value()) << text;
    EXPECT_EQ(address.error().code(), Code::kInvalidArgument);
    EXPECT_NE(address.error().message().find("'" + text + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace optcache::net
