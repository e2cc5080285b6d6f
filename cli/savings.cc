#include "cli/savings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/text_table.h"
#include "dataset/store_price.h"
#include "net/http_client.h"

namespace optcache::cli {
namespace {

constexpr Duration kPageTimeout = std::chrono::seconds(5);
constexpr std::size_t kPageBytesMax = 16_MiB;
constexpr std::string_view kSavedRequests = "optcache_saved_requests";
constexpr std::string_view kSavedBytes = "optcache_saved_bytes";
constexpr std::string_view kSavedCost = "optcache_saved_cost";
constexpr std::string_view kLabelBegin = "{dataset=\"";
constexpr std::string_view kLabelEnd = "\"} ";

// A line such as `optcache_saved_bytes{dataset="vision/images"} 12`.
void TakeLine(std::string_view line, std::map<std::string, Savings>& savings) {
  const std::size_t begin = line.find(kLabelBegin);
  const std::size_t end = line.find(kLabelEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos) return;
  const std::string_view metric = line.substr(0, begin);
  if (metric != kSavedRequests && metric != kSavedBytes && metric != kSavedCost) return;
  const std::size_t name_at = begin + kLabelBegin.size();
  const std::string name(line.substr(name_at, end - name_at));
  const std::string number(line.substr(end + kLabelEnd.size()));
  const double value = std::strtod(number.c_str(), nullptr);
  Savings& of = savings[name];
  of.dataset = name;
  if (metric == kSavedRequests) of.requests += value;
  if (metric == kSavedBytes) of.bytes += value;
  if (metric == kSavedCost) of.cost = of.cost.value_or(0) + value;
}

std::string BytesText(double bytes) {
  return (bytes < 0 ? "-" : "") + FormatBytes(static_cast<ByteCount>(std::abs(bytes)));
}

}  // namespace

std::vector<std::string> FetchPages(const std::vector<std::string>& urls) {
  if (urls.empty()) return {};
  std::vector<std::string> pages;
  net::EventLoop loop;
  const std::unique_ptr<net::HttpClient> client =
      net::MakeHttpClient(loop, {.max_body_bytes = kPageBytesMax, .max_in_flight = urls.size()});
  std::size_t missing = urls.size();
  for (const std::string& url : urls) {
    client->Send({.url = url}, kPageTimeout, [&](Result<net::HttpResponse> response) {
      if (response && response->status == 200) pages.push_back(std::move(response->body));
      if (--missing == 0) loop.Stop();
    });
  }
  loop.Run();
  return pages;
}

std::vector<Savings> SavingsIn(const std::vector<std::string>& pages) {
  std::map<std::string, Savings> by_name;
  for (const std::string_view page : pages) {
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t end = std::min(page.find('\n', at), page.size());
      TakeLine(page.substr(at, end - at), by_name);
      at = end + 1;
    }
  }
  std::vector<Savings> all;
  for (auto& [name, savings] : by_name)
    all.push_back(std::move(savings));
  return all;
}

std::string FormatSavings(const std::vector<Savings>& savings) {
  if (savings.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"DATASET", "SAVED REQUESTS", "SAVED BYTES", "SAVED MONEY"}};
  for (const Savings& of : savings) {
    rows.push_back({of.dataset, fmt::format("{:.0f}", of.requests), BytesText(of.bytes),
                    of.cost ? dataset::FormatMoney(*of.cost) : "-"});
  }
  return "Saved by the sidecars that run, compared with the same reads without a cache:\n" +
         FormatTable(std::move(rows));
}

}  // namespace optcache::cli
