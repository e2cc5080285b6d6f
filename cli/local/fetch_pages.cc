#include "cli/local/fetch_pages.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "net/http_client.h"

namespace optcache::cli {
namespace {

constexpr std::size_t kPageBytesMax = 16_MiB;
constexpr int kOk = 200;

Result<FetchedPage> PageOf(Result<net::HttpResponse> response) {
  if (!response) return Error(std::move(response).error());
  if (response->status != kOk)
    return Error(Code::kUnavailable, fmt::format("status {}", response->status));
  return FetchedPage{.text = std::move(response->body), .at = SystemClock().Now()};
}

}  // namespace

std::vector<Result<FetchedPage>> FetchPages(const std::vector<std::string>& urls,
                                            Duration patience) {
  std::vector<Result<FetchedPage>> pages(urls.size(), Error(Code::kUnavailable, "not asked"));
  if (urls.empty()) return pages;
  net::EventLoop loop;
  const std::unique_ptr<net::HttpClient> client =
      net::MakeHttpClient(loop, {.max_body_bytes = kPageBytesMax, .max_in_flight = urls.size()});
  std::size_t missing = urls.size();
  for (std::size_t i = 0; i < urls.size(); ++i) {
    client->Send({.url = urls[i]}, patience, [&, i](Result<net::HttpResponse> response) {
      pages[i] = PageOf(std::move(response));
      if (--missing == 0) loop.Stop();
    });
  }
  loop.Run();
  return pages;
}

}  // namespace optcache::cli
