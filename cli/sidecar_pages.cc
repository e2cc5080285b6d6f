#include "cli/sidecar_pages.h"

#include <iterator>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "net/http_client.h"

namespace optcache::cli {
namespace {

constexpr Duration kPageTimeout = std::chrono::seconds(5);
constexpr std::size_t kPageBytesMax = 16_MiB;

}  // namespace

SidecarPages AskSidecars(const std::vector<std::string>& urls) {
  SidecarPages pages = {.samples = {}, .asked = urls.size(), .silent = urls.size()};
  if (urls.empty()) return pages;
  net::EventLoop loop;
  const std::unique_ptr<net::HttpClient> client =
      net::MakeHttpClient(loop, {.max_body_bytes = kPageBytesMax, .max_in_flight = urls.size()});
  std::size_t missing = urls.size();
  for (const std::string& url : urls) {
    client->Send({.url = url}, kPageTimeout, [&](Result<net::HttpResponse> response) {
      if (response && response->status == 200) {
        std::vector<MetricSample> samples = ParseMetrics(response->body);
        std::ranges::move(samples, std::back_inserter(pages.samples));
        --pages.silent;
      }
      if (--missing == 0) loop.Stop();
    });
  }
  loop.Run();
  return pages;
}

}  // namespace optcache::cli
