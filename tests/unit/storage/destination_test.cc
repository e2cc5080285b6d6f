#include "storage/destination.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::storage {
namespace {

MutableByteSpan Span(std::string& text, size_t offset, size_t length) {
  return std::as_writable_bytes(std::span(text)).subspan(offset, length);
}

TEST(Destination, CountsWhatItThrowsAway) {
  std::string first(3, '.');
  std::string second(2, '.');
  Destination destination(Span(first, 0, 3));
  destination.Skip(4);
  destination.Add(Span(second, 0, 2));
  EXPECT_EQ(destination.size(), 9);
  EXPECT_EQ(destination.parts().size(), 3);
  EXPECT_EQ(destination.parts()[1].data, nullptr);
}

TEST(Destination, HasNoEmptyParts) {
  std::string text;
  Destination destination(Span(text, 0, 0));
  destination.Skip(0);
  EXPECT_TRUE(destination.empty());
  EXPECT_TRUE(destination.parts().empty());
}

TEST(DestinationWriter, FillsSeveralPlaces) {
  std::string first(3, '.');
  std::string second(2, '.');
  Destination destination(Span(first, 0, 3));
  destination.Skip(4);
  destination.Add(Span(second, 0, 2));
  DestinationWriter writer(std::move(destination));
  EXPECT_TRUE(writer.Write(AsBytes("012345678")));
  EXPECT_EQ(first, "012");
  EXPECT_EQ(second, "78");
  EXPECT_EQ(writer.written(), 9);
}

TEST(DestinationWriter, RefusesMoreThanItHolds) {
  std::string text(3, '.');
  DestinationWriter writer(Destination(Span(text, 0, 3)));
  EXPECT_TRUE(writer.Write(AsBytes("ab")));
  EXPECT_FALSE(writer.Write(AsBytes("cd")));
  EXPECT_EQ(text, "ab.");
  EXPECT_EQ(writer.written(), 2);
  EXPECT_TRUE(writer.Write(AsBytes("c")));
  EXPECT_FALSE(writer.Write(AsBytes("d")));
  EXPECT_TRUE(writer.Write({}));
}

// However the destination is divided and however the bytes arrive, each byte ends where it belongs.
TEST(DestinationWriter, WritesTheSameInAnyPieces) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string source(1 + random.Below(300), '\0');
    for (char& c : source)
      c = static_cast<char>('a' + random.Below(26));
    std::string into(source.size(), '.');
    std::string expected = into;
    Destination destination;
    for (size_t at = 0; at < source.size();) {
      const size_t length = 1 + random.Below(source.size() - at);
      if (random.Below(3) == 0) {
        destination.Skip(length);
      } else {
        destination.Add(Span(into, at, length));
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(at), length,
                    expected.begin() + static_cast<std::ptrdiff_t>(at));
      }
      at += length;
    }
    ASSERT_EQ(destination.size(), source.size());
    DestinationWriter writer(std::move(destination));
    for (size_t at = 0; at < source.size();) {
      const size_t length = 1 + random.Below(std::min<size_t>(source.size() - at, 40));
      ASSERT_TRUE(writer.Write(AsBytes(std::string_view(source).substr(at, length))));
      at += length;
    }
    EXPECT_EQ(into, expected);
    EXPECT_EQ(writer.written(), source.size());
  }
}

TEST(DestinationWriter, WritesNothingOnceItIsStopped) {
  std::string into = "....";
  Destination destination(std::as_writable_bytes(std::span(into)));
  const auto stop = std::make_shared<WriteStop>();
  destination.set_stop(stop);
  DestinationWriter writer(destination);
  EXPECT_TRUE(writer.Write(AsBytes("ab")));
  stop->Stop();
  EXPECT_FALSE(writer.Write(AsBytes("cd")));
  EXPECT_EQ(into, "ab..");
  EXPECT_EQ(writer.written(), 2U);
}

TEST(DestinationWriter, CountsWhatComesPieceByPiece) {
  std::string into = "....";
  Destination destination(std::as_writable_bytes(std::span(into)));
  const auto traffic = std::make_shared<Traffic>();
  destination.set_traffic(traffic);
  EXPECT_TRUE(DestinationWriter(destination).Write(AsBytes("abc")));
  EXPECT_EQ(traffic->arrived, 3U);
  EXPECT_TRUE(DestinationWriter(destination.After(3)).Write(AsBytes("d")));
  EXPECT_EQ(traffic->arrived, 4U);
}

TEST(DestinationWriter, CountsWhatComesAfterTheStop) {
  std::string into = "....";
  Destination destination(std::as_writable_bytes(std::span(into)));
  const auto traffic = std::make_shared<Traffic>();
  const auto stop = std::make_shared<WriteStop>();
  destination.set_traffic(traffic);
  destination.set_stop(stop);
  DestinationWriter writer(destination);
  stop->Stop();
  EXPECT_FALSE(writer.Write(AsBytes("abc")));
  EXPECT_EQ(traffic->arrived, 3U);
}

TEST(Destination, TheRestBeginsBehindWhatIsFilled) {
  std::string first = "..";
  std::string second = "...";
  Destination all;
  all.Add(std::as_writable_bytes(std::span(first)));
  all.Skip(2);
  all.Add(std::as_writable_bytes(std::span(second)));
  for (ByteCount length = 0; length < all.size(); ++length) {
    first = "..";
    second = "...";
    const Destination rest = all.After(length);
    ASSERT_EQ(rest.size(), all.size() - length);
    const std::string bytes = std::string("0123456").substr(length);
    EXPECT_TRUE(DestinationWriter(rest).Write(AsBytes(bytes)));
    EXPECT_EQ(first + second, std::string(std::min<ByteCount>(length, 2), '.') +
                                  std::string("01").substr(std::min<ByteCount>(length, 2)) +
                                  std::string(length > 4 ? length - 4 : 0, '.') +
                                  std::string("456").substr(length > 4 ? length - 4 : 0));
  }
}

}  // namespace
}  // namespace optcache::storage
