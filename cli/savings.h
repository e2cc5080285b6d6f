#pragma once

// What the cache saved, as the pages of sidecars have it (docs/user/what-it-saves.md).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace optcache::cli {

// Sums of one dataset over sidecars.
struct Savings {
  std::string dataset;
  double requests = 0;
  double bytes = 0;
  std::optional<double> cost;  // nullopt: no price is known
  friend bool operator==(const Savings&, const Savings&) = default;
};

// The bodies of the pages at these URLs that answer.
std::vector<std::string> FetchPages(const std::vector<std::string>& urls);

// Of pages in Prometheus's text format; by name. Pure, as is what follows.
std::vector<Savings> SavingsIn(const std::vector<std::string>& pages);

// A table, or nothing where there is nothing. Ends with a newline.
std::string FormatSavings(const std::vector<Savings>& savings);

}  // namespace optcache::cli
