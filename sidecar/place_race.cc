#include "sidecar/place_race.h"

#include <algorithm>
#include <utility>

namespace optcache::sidecar {

PlaceRace::PlaceRace(net::EventLoop& loop, net::HttpClient& http, PlaceRaceOptions options,
                     Hooks hooks)
    : loop_(loop), http_(http), options_(std::move(options)), hooks_(std::move(hooks)) {
  for (const std::string& url : options_.urls) {
    const std::size_t number = askers_.size();
    askers_.push_back(
        std::make_unique<Asker>(Asker{.url = url,
                                      .backoff = Backoff(options_.backoff, options_.seed + number),
                                      .timer = net::Timer()}));
    Asker& asker = *askers_.back();
    asker.timer = loop_.After(options_.head_start * number, [this, &asker] { Ask(asker); });
  }
}

void PlaceRace::Ask(Asker& asker) {
  auto request = hooks_.request(asker.url);
  if (!request) return OnAnswer(asker, Error(std::move(request).error()));
  http_.Send(*std::move(request), options_.request_timeout,
             [this, &asker, alive = alive_](Result<net::HttpResponse> response) {
               if (*alive) OnAnswer(asker, std::move(response));
             });
}

void PlaceRace::OnAnswer(Asker& asker, Result<net::HttpResponse> response) {
  if (over_) return;
  const std::optional<Duration> again = hooks_.answer(asker.url, std::move(response));
  if (again) {
    asker.timer =
        loop_.After(std::max(*again, asker.backoff.Next()), [this, &asker] { Ask(asker); });
    return;
  }
  over_ = true;
  for (const auto& other : askers_)
    other->timer.Cancel();
}

}  // namespace optcache::sidecar
