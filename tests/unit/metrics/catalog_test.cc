#include "metrics/catalog.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/source_dir.h"

namespace optcache::metrics {
namespace {

std::string_view NameOf(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      return "histogram";
  }
  return "";
}

std::string Table(const Section& section) {
  std::string table = "| name | kind | labels | meaning |\n| --- | --- | --- | --- |\n";
  for (const Metric& metric : section.metrics) {
    const std::string_view labels = metric.labels.empty() ? "–" : metric.labels;
    for (const std::string_view word :
         {std::string_view("| `"), metric.name, std::string_view("` | "), NameOf(metric.kind),
          std::string_view(" | "), labels, std::string_view(" | "), metric.help, metric.details,
          std::string_view(" |\n")}) {
      table += word;
    }
  }
  return table;
}

// `page` with the section's table in place of the one below its heading, or with both at its end.
std::string WithTable(const std::string& page, const Section& section) {
  const std::string heading = "\n## " + std::string(section.title) + "\n";
  const std::size_t begin = page.find(heading);
  if (begin == std::string::npos) return page + heading + "\n" + Table(section);
  const std::size_t next = std::min(page.find("\n## ", begin + 1), page.size());
  const std::size_t table = page.find("\n| name |", begin);
  if (table >= next) return page.substr(0, next) + "\n" + Table(section) + page.substr(next);
  std::size_t end = table + 1;
  while (end < page.size() && page[end] == '|')
    end = page.find('\n', end) + 1;
  return page.substr(0, table + 1) + Table(section) + page.substr(end);
}

TEST(Catalog, NamesEachMetricOnceAndByTheConventions) {
  std::set<std::string_view> names;
  for (const Section& section : Catalog()) {
    for (const Metric& metric : section.metrics) {
      EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
      EXPECT_FALSE(metric.help.empty()) << metric.name;
      EXPECT_EQ(metric.name.ends_with("_total"), metric.kind == MetricKind::kCounter)
          << metric.name;
      EXPECT_EQ(FindMetric(std::string(metric.name) +
                           (metric.kind == MetricKind::kHistogram ? "_bucket" : "")),
                &metric);
    }
  }
  EXPECT_EQ(FindMetric("optcache_no_such_metric"), nullptr);
}

TEST(Catalog, HelpIsOneLineWithoutLinks) {
  for (const Section& section : Catalog()) {
    for (const Metric& metric : section.metrics) {
      EXPECT_EQ(metric.help.find_first_of("[]\n|"), std::string_view::npos) << metric.name;
      EXPECT_EQ(metric.details.find_first_of("\n|"), std::string_view::npos) << metric.name;
    }
  }
}

// Words of what shows metrics to people.
std::set<std::string> ShownWords() {
  std::set<std::string> words;
  std::vector<std::filesystem::path> files = {
      InRepository("charts/optcache/templates/prometheusrule.yaml")};
  for (const auto& entry :
       std::filesystem::directory_iterator(InRepository("charts/optcache/dashboards")))
    files.push_back(entry.path());
  for (const auto& file : files) {
    const auto text = ReadFile(file.string(), 4_MiB);
    EXPECT_TRUE(text.has_value()) << text.error().ToString();
    std::string word;
    for (const char c : text.value_or("") + " ") {
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_') {
        word += c;
      } else {
        words.insert(std::exchange(word, ""));
      }
    }
  }
  return words;
}

TEST(Catalog, EachMetricIsInADashboardOrAnAlertOrSaysWhyNot) {
  const std::set<std::string> shown = ShownWords();
  for (const Section& section : Catalog()) {
    for (const Metric& metric : section.metrics) {
      const std::string name(metric.name);
      const bool is_shown = shown.contains(name) || shown.contains(name + "_bucket") ||
                            shown.contains(name + "_sum") || shown.contains(name + "_count");
      EXPECT_EQ(is_shown, metric.not_shown.empty())
          << name
          << (is_shown ? " is shown: take its `not_shown` out"
                       : " is in no panel and no alert: add it, or say in `not_shown` why not");
    }
  }
}

TEST(Catalog, ATableIsWrittenOnceWhereverItsSectionIs) {
  const std::array<Metric, 1> metrics = {Metric{.name = "optcache_a", .help = "A"}};
  const Section section{.title = "Of A", .metrics = metrics};
  const std::string row = "| `optcache_a` | gauge | – | A |\n";
  const std::string table = "| name | kind | labels | meaning |\n| --- | --- | --- | --- |\n" + row;
  const std::string whole = "# Metrics\n\n## Of A\n\n" + table;
  EXPECT_EQ(WithTable("# Metrics\n", section), whole);
  EXPECT_EQ(WithTable(whole, section), whole);
  EXPECT_EQ(WithTable("# Metrics\n\n## Of A\n\n## Of B\n", section), whole + "\n## Of B\n");
  EXPECT_EQ(WithTable(whole + "| `optcache_old` | gauge | – | B |\nText.\n", section),
            whole + "Text.\n");
}

TEST(Catalog, IsTheTablesOfThePage) {
  const std::string path = InRepository("docs/metrics.md");
  const auto page = ReadFile(path, 1_MiB);
  ASSERT_TRUE(page.has_value()) << page.error().ToString();
  std::string expected = *page;
  for (const Section& section : Catalog())
    expected = WithTable(expected, section);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(path, expected).ok());
    return;
  }
  EXPECT_EQ(*page, expected) << "./dev generate writes the tables of docs/metrics.md";
}

}  // namespace
}  // namespace optcache::metrics
