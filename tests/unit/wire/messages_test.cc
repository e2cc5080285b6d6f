#include "wire/messages.h"

#include <string>
#include <string_view>
#include <variant>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/source_dir.h"
#include "wire/frame.h"

namespace optcache::wire {
namespace {

std::string WordsOf(Directions directions) {
  std::string words;
  for (const auto& [direction, name] :
       {std::pair(kSidecarToNode, "sidecar to node"), std::pair(kNodeToSidecar, "node to sidecar"),
        std::pair(kNodeToNode, "node to node")}) {
    if ((directions & direction) == 0) continue;
    words += (words.empty() ? "" : ", ") + std::string(name);
  }
  return words;
}

// The first four cells of a row in docs/formats/wire.md.
std::string RowOf(const About& about) {
  const std::string directions = WordsOf(about.directions);
  return "| " + std::to_string(about.number) + " | " + std::string(about.name) + " | " +
         std::to_string(about.since) + " | " + directions + (directions.empty() ? "|" : " |");
}

// The first `cells` cells of each row below the head of the table that follows `heading`.
std::string RowsBelow(std::string_view page, std::string_view heading, int cells) {
  std::string rows;
  std::size_t at = page.find("\n| ---", page.find(heading));
  for (at = page.find('\n', at + 1); at + 1 < page.size() && page[at + 1] == '|';
       at = page.find('\n', at + 1)) {
    std::size_t end = at + 1;
    for (int cell = 0; cell < cells; ++cell)
      end = page.find('|', end + 1);
    rows += std::string(page.substr(at + 1, end - at)) + "\n";
  }
  return rows;
}

TEST(Messages, AreThoseOfTheTableInTheFormatsPage) {
  std::string rows;
  for (std::size_t number = 1; number <= std::variant_size_v<Message>; ++number)
    rows += RowOf(AboutOf(static_cast<MessageType>(number))) + "\n";
  const auto page = ReadFile(InRepository("docs/formats/wire.md"), 1_MiB);
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(rows, RowsBelow(*page, "\n## Messages\n", 4));
}

}  // namespace
}  // namespace optcache::wire
