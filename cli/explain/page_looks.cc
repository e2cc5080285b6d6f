#include "cli/explain/page_looks.h"

#include <algorithm>
#include <thread>

#include "cli/local/fetch_pages.h"
#include "cli/local/metrics_text.h"

namespace optcache::cli {
namespace {

bool HasReader(const Result<FetchedPage>& page) {
  return page && SumOf(ParseMetrics(page->text), "optcache_loaders_attached") > 0;
}

}  // namespace

std::vector<Result<PageLooks>> LookTwice(const std::vector<std::string>& urls, Duration patience) {
  const std::vector<Result<FetchedPage>> before = FetchPages(urls, patience);
  std::vector<Result<FetchedPage>> after;
  if (std::ranges::any_of(before, HasReader)) {
    std::this_thread::sleep_for(kBetweenLooks);
    after = FetchPages(urls, patience);
  }
  const std::vector<Result<FetchedPage>>& last = after.empty() ? before : after;
  std::vector<Result<PageLooks>> looks;
  for (std::size_t i = 0; i < urls.size(); ++i) {
    if (!before[i] || !last[i]) {
      looks.emplace_back(Error((before[i] ? last : before)[i].error()));
      continue;
    }
    looks.emplace_back(PageLooks{.before = ParseMetrics(before[i]->text),
                                 .after = ParseMetrics(last[i]->text),
                                 .seconds = ToSeconds(last[i]->at - before[i]->at)});
  }
  return looks;
}

}  // namespace optcache::cli
