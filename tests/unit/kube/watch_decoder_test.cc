#include "kube/watch_decoder.h"

#include <gtest/gtest.h>

namespace optcache::kube {
namespace {

std::string Line(std::string_view type, const std::string& name, std::string note = "") {
  return Json({{"type", type},
               {"object",
                {{"metadata", {{"name", name}, {"resourceVersion", "5"}}},
                 {"note", std::move(note)}}}})
             .dump() +
         "\n";
}

const WatchEvent& EventAt(const std::vector<DecodedEvent>& events, std::size_t i) {
  return std::get<WatchEvent>(events.at(i));
}

TEST(WatchDecoder, AnEventIsALine) {
  WatchDecoder decoder;
  std::vector<DecodedEvent> events;
  const std::string bytes = Line("ADDED", "a") + Line("MODIFIED", "b") + Line("DELETED", "c");
  ASSERT_TRUE(decoder.Feed(bytes, events).ok());
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(EventAt(events, 0).type, WatchEventType::kAdded);
  EXPECT_EQ(EventAt(events, 1).type, WatchEventType::kModified);
  EXPECT_EQ(EventAt(events, 2).type, WatchEventType::kDeleted);
  EXPECT_EQ(KeyOf(EventAt(events, 2).object).name, "c");
  EXPECT_TRUE(decoder.Finish().ok());
}

TEST(WatchDecoder, LinesMayBeCutAnywhereAlsoWithinACharacter) {
  const std::string bytes = Line("ADDED", "a", "größer 世界") + Line("ADDED", "b");
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    WatchDecoder decoder;
    std::vector<DecodedEvent> events;
    ASSERT_TRUE(decoder.Feed(std::string_view(bytes).substr(0, cut), events).ok());
    ASSERT_TRUE(decoder.Feed(std::string_view(bytes).substr(cut), events).ok());
    ASSERT_EQ(events.size(), 2U) << cut;
    ASSERT_EQ(TextAt(EventAt(events, 0).object, "/note"), "größer 世界");
  }
}

TEST(WatchDecoder, LinesMayComeByteByByte) {
  WatchDecoder decoder;
  std::vector<DecodedEvent> events;
  for (const char c : Line("ADDED", "a") + Line("ADDED", "b"))
    ASSERT_TRUE(decoder.Feed(std::string_view(&c, 1), events).ok());
  EXPECT_EQ(events.size(), 2U);
}

TEST(WatchDecoder, TakesVeryLongLines) {
  WatchDecoder decoder;
  std::vector<DecodedEvent> events;
  ASSERT_TRUE(decoder.Feed(Line("ADDED", "a", std::string(2 << 20U, 'x')), events).ok());
  EXPECT_EQ(events.size(), 1U);
}

TEST(WatchDecoder, ALineBeyondTheLimitEndsIt) {
  const std::string line = Line("ADDED", "a");
  std::vector<DecodedEvent> events;
  EXPECT_TRUE(WatchDecoder(line.size() - 1).Feed(line, events).ok());
  const Status status = WatchDecoder(line.size() - 2).Feed(line, events);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  // Also before its end has come.
  WatchDecoder endless(100);
  EXPECT_TRUE(endless.Feed(std::string(100, 'x'), events).ok());
  EXPECT_EQ(endless.Feed("x", events).code(), Code::kResourceExhausted);
}

TEST(WatchDecoder, ABookmarkNeedsNoName) {
  WatchDecoder decoder;
  std::vector<DecodedEvent> events;
  ASSERT_TRUE(
      decoder
          .Feed("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n",
                events)
          .ok());
  EXPECT_EQ(EventAt(events, 0).type, WatchEventType::kBookmark);
  EXPECT_EQ(ResourceVersionOf(EventAt(events, 0).object), "9");
}

TEST(WatchDecoder, AnErrorEventIsAnApiError) {
  WatchDecoder decoder;
  std::vector<DecodedEvent> events;
  ASSERT_TRUE(decoder
                  .Feed("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                        "\"reason\":\"Expired\",\"message\":\"too old resource version\"}}\n",
                        events)
                  .ok());
  const auto& error = std::get<ApiError>(events.at(0));
  EXPECT_TRUE(error.expired());
  EXPECT_EQ(error.status.message(), "watch: too old resource version (410)");
}

TEST(WatchDecoder, SkipsBlankLines) {
  WatchDecoder decoder;
  std::vector<DecodedEvent> events;
  ASSERT_TRUE(decoder.Feed("\n\r\n" + Line("ADDED", "a") + "\n", events).ok());
  EXPECT_EQ(events.size(), 1U);
}

TEST(WatchDecoder, WhatIsNoEventIsDataLoss) {
  for (const char* line :
       {"text\n", "{}\n", "[]\n", "{\"type\":\"ADDED\"}\n", "{\"type\":\"ADDED\",\"object\":5}\n",
        "{\"type\":\"ADDED\",\"object\":{}}\n",
        "{\"type\":\"RENAMED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n",
        "{\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"}) {
    std::vector<DecodedEvent> events;
    EXPECT_EQ(WatchDecoder().Feed(line, events).code(), Code::kDataLoss) << line;
    EXPECT_TRUE(events.empty());
  }
}

TEST(WatchDecoder, AnEndWithinALineIsDataLoss) {
  WatchDecoder decoder;
  std::vector<DecodedEvent> events;
  const std::string line = Line("ADDED", "a");
  ASSERT_TRUE(decoder.Feed(line.substr(0, 10), events).ok());
  EXPECT_EQ(decoder.Finish().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace optcache::kube
