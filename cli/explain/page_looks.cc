#include "cli/explain/page_looks.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "cli/local/fetch_pages.h"
#include "cli/local/metrics_text.h"

namespace optcache::cli {
namespace {

struct Look {
  std::vector<Result<std::string>> pages;
  MonotonicTime at;
};

Look LookAt(const std::vector<std::string>& urls, Duration patience) {
  Look look = {.pages = FetchPages(urls, patience), .at = {}};
  look.at = SystemClock().Now();
  return look;
}

bool HasReader(const Result<std::string>& page) {
  return page && SumOf(ParseMetrics(*page), "optcache_loaders_attached") > 0;
}

}  // namespace

std::vector<Result<PageLooks>> LookTwice(const std::vector<std::string>& urls, Duration patience) {
  const Look before = LookAt(urls, patience);
  Look after;
  if (std::ranges::any_of(before.pages, HasReader)) {
    std::this_thread::sleep_for(kBetweenLooks);
    after = LookAt(urls, patience);
  }
  const Look& last = after.pages.empty() ? before : after;
  std::vector<Result<PageLooks>> looks;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    if (!before.pages[i] || !last.pages[i]) {
      looks.emplace_back(Error((before.pages[i] ? last : before).pages[i].error()));
      continue;
    }
    looks.emplace_back(PageLooks{.before = ParseMetrics(*before.pages[i]),
                                 .after = ParseMetrics(*last.pages[i]),
                                 .seconds = ToSeconds(last.at - before.at)});
  }
  return looks;
}

}  // namespace optcache::cli
