#include "cli/local/sidecar_pages.h"

#include <algorithm>
#include <iterator>

#include "cli/local/fetch_pages.h"

namespace optcache::cli {

SidecarPages AskSidecars(const std::vector<std::string>& urls) {
  SidecarPages pages = {.samples = {}, .asked = urls.size()};
  for (const Result<FetchedPage>& page : FetchPages(urls, std::chrono::seconds(5))) {
    if (!page) {
      ++pages.silent;
      continue;
    }
    std::ranges::move(ParseMetrics(page->text), std::back_inserter(pages.samples));
  }
  return pages;
}

}  // namespace optcache::cli
