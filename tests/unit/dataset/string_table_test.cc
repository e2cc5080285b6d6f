#include "dataset/string_table.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace optcache::dataset {
namespace {

std::string Encode(const std::vector<std::string>& strings) {
  StringTableBuilder builder;
  for (const std::string& s : strings)
    builder.Add(s);
  return std::move(builder).Finish();
}

Status Walk(const std::string& encoded) {
  const Result<StringTableView> view = StringTableView::Open(encoded);
  if (!view) return view.error();
  return view->ForEach([](std::uint32_t, std::string_view) { return OkStatus(); });
}

TEST(StringTable, GivesBackWhatWasAdded) {
  Random random(7);
  for (size_t count = 0; count < 70; ++count) {
    std::vector<std::string> strings(count);
    for (std::string& s : strings) {
      s = std::string(random.Below(300), 'x');
      if (!s.empty()) s[random.Below(s.size())] = 'y';
    }
    const std::string encoded = Encode(strings);
    const StringTableView view = StringTableView::Open(encoded).value();
    ASSERT_EQ(view.size(), count);
    for (std::uint32_t i = 0; i < count; ++i)
      EXPECT_EQ(view.At(i), strings[i]);
    std::uint32_t seen = 0;
    ASSERT_TRUE(view.ForEach([&](std::uint32_t i, std::string_view text) {
                      EXPECT_EQ(text, strings[i]);
                      ++seen;
                      return OkStatus();
                    })
                    .ok());
    EXPECT_EQ(seen, count);
  }
}

TEST(StringTable, HoldsTheLongestString) {
  const std::string longest(kStringBytesMax, 'p');
  const std::string encoded = Encode({longest, longest});
  EXPECT_EQ(StringTableView::Open(encoded)->At(1), longest);
}

TEST(StringTable, EveryCutAndEveryChangedByteIsFoundOrHarmless) {
  std::vector<std::string> strings;
  for (int i = 0; i < 40; ++i)
    strings.push_back("folder/file_" + std::to_string(i));
  const std::string encoded = Encode(strings);
  for (size_t length = 0; length < encoded.size(); ++length) {
    EXPECT_EQ(Walk(encoded.substr(0, length)).code(), Code::kDataLoss) << length;
  }
  for (size_t at = 0; at < encoded.size(); ++at) {
    for (const unsigned flip : {1U, 0x80U, 0xffU}) {
      std::string damaged = encoded;
      damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ flip);
      const Status status = Walk(damaged);
      EXPECT_TRUE(status.ok() || status.code() == Code::kDataLoss) << status.ToString();
    }
  }
}

TEST(StringTable, ErrorsNameTheByte) {
  std::string encoded = Encode({"ab"});
  encoded[encoded.size() - 3] = 9;  // the rest's length: more than there is
  EXPECT_EQ(Walk(encoded).message(), "string table: string, at byte 24");
}

}  // namespace
}  // namespace optcache::dataset
