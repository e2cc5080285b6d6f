// Keeps one long poll for states and one chain of reports going.
//
// A poll that ends begins the next: at once after a good answer, with backoff after a failure. Only
// a state with a higher version is applied. A report that ends arms the next; ReportSoon brings it
// forward to 20 ms, and one that is asked for while a report is under way follows it. So there is
// one report at a time. The answer to a report names the lists that the coordinator wants; when all
// of them are sent, a report follows at once, whose answer names the next. A fetch is tried again
// until it succeeds or is not found.

#include "cache-node/control/control_client.h"

#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/percent_encoding.h"
#include "coordination/codec.h"
#include "coordination/report_size.h"

namespace optcache::node {
namespace {

constexpr Duration kPollTimeout = std::chrono::seconds(40);  // the server answers within 20 s
constexpr Duration kReportTimeout = std::chrono::seconds(5);
constexpr Duration kFetchTimeout = std::chrono::seconds(60);
constexpr Duration kReportGap = std::chrono::milliseconds(20);
constexpr BackoffOptions kBackoff = {.first = std::chrono::milliseconds(100),
                                     .limit = std::chrono::seconds(5)};

}  // namespace

ControlClient::ControlClient(net::EventLoop& loop, ControlHttp& http, Options options, Hooks hooks)
    : loop_(loop),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      http_(http),
      backoff_(kBackoff, options_.seed),
      version_(options_.version) {}

void ControlClient::Start() {
  started_ = true;
  Report();
  Poll();
}

void ControlClient::Poll() {
  net::HttpRequest request{.url = fmt::format("/v1/state?after={}&member={}",
                                              coordination::FormatVersion(version_),
                                              PercentEncode(options_.node))};
  http_.Send(std::move(request), kPollTimeout,
             [this](Result<net::HttpResponse> response) { OnState(std::move(response)); });
}

void ControlClient::OnState(Result<net::HttpResponse> response) {
  Status problem;
  if (!response) {
    problem = std::move(response).error();
  } else if (response->status == 200) {
    auto state = coordination::ParseDesiredState(response->body);
    if (!state) {
      problem = std::move(state).error().WithContext("desired state");
    } else if (state->version > version_) {
      version_ = state->version;
      hooks_.apply(*state);
    }
  } else if (response->status != 204 && response->status != 304) {
    problem = {Code::kUnavailable, fmt::format("HTTP status {}", response->status)};
  }
  if (problem.ok()) {
    if (!std::exchange(connected_, true)) {
      Log(LogLevel::kInfo, "coordinator reached", {{"url", http_.server()}});
      ReportSoon();
    }
    backoff_.Reset();
    // Not from within the callback, so that a server that answers at once cannot starve the loop.
    poll_timer_ = loop_.After(std::chrono::milliseconds(1), [this] { Poll(); });
    return;
  }
  if (std::exchange(connected_, false)) {
    Log(LogLevel::kWarning, "coordinator lost, going on with the last state",
        {{"url", http_.server()}, {"why", problem.ToString()}});
  } else if (!std::exchange(told_of_failure_, true)) {
    Log(LogLevel::kWarning, "coordinator not reached yet, trying again",
        {{"url", http_.server()}, {"why", problem.ToString()}});
  }
  poll_timer_ = loop_.After(backoff_.Next(), [this] { Poll(); });
}

void ControlClient::ReportSoon() {
  if (!started_) return;
  if (reporting_) {
    report_again_ = true;
  } else if (!std::exchange(report_soon_, true)) {
    report_timer_ = loop_.After(kReportGap, [this] { Report(); });
  }
}

void ControlClient::Report() {
  reporting_ = true;
  report_soon_ = false;
  coordination::Report report = hooks_.report();
  if (const std::size_t passes = coordination::LeaveOutPasses(report); passes > 0) {
    if (const auto not_logged = passes_log_.Pass(SystemClock().Now())) {
      Log(LogLevel::kWarning, "a report leaves out passes, there are too many",
          {{"passes", passes}, {"not_logged", *not_logged}});
    }
  }
  net::HttpRequest request{.method = "POST",
                           .url = "/v1/report",
                           .headers = {{"Content-Type", "application/json"}},
                           .body = coordination::ToJson(report)};
  http_.Send(std::move(request), kReportTimeout,
             [this, batch = report.savings.number](Result<net::HttpResponse> response) {
               if (response && response->status >= 400 && response->status < 500) {
                 Log(LogLevel::kError, "the coordinator refused a report",
                     {{"status", response->status}, {"answer", response->body}});
               }
               if (response && response->status == 200) {
                 if (hooks_.answered) hooks_.answered(batch);
                 TakeAnswer(response->body);
               } else {
                 TakeShares({});
               }
               // Only now, so that a hook's ReportSoon has its report follow this one.
               reporting_ = false;
               const bool again = std::exchange(report_again_, false);
               report_timer_ =
                   loop_.After(again ? kReportGap : options_.report_every, [this] { Report(); });
             });
}

void ControlClient::TakeAnswer(const std::string& answer) {
  const auto parsed = coordination::ParseReportAnswer(answer);
  if (!parsed) return TakeShares({});
  TakeShares(parsed->shares);
  SendTraces(parsed->traces_wanted);
}

void ControlClient::TakeShares(const std::vector<coordination::DatasetShare>& shares) {
  if (hooks_.shares) hooks_.shares(shares);
}

// What the coordinator wants of the lists that the report has named. When they are there it says
// what it wants next.
void ControlClient::SendTraces(const std::vector<std::string>& digests) {
  for (const std::string& digest : digests) {
    const auto bytes = hooks_.trace ? hooks_.trace(digest) : nullptr;
    if (bytes == nullptr || !sending_.insert(digest).second) continue;
    net::HttpRequest request{
        .method = "POST",
        .url = fmt::format("/v1/traces/{}?node={}", digest, PercentEncode(options_.node)),
        .headers = {{"Content-Type", "application/octet-stream"}},
        .body = *bytes};
    http_.Send(std::move(request), kFetchTimeout,
               [this, digest](const Result<net::HttpResponse>& response) {
                 sending_.erase(digest);
                 if (!response || response->status != 204) {
                   Log(LogLevel::kWarning, "a list of ids is not taken",
                       {{"why", response ? response->body : response.error().ToString()}});
                 } else if (sending_.empty()) {
                   ReportSoon();
                 }
               });
  }
}

void ControlClient::SendInventory(const coordination::Inventory& inventory) {
  net::HttpRequest request{.method = "POST",
                           .url = "/v1/inventory",
                           .headers = {{"Content-Type", "application/json"}},
                           .body = coordination::ToJson(inventory)};
  // Lost ones are not sent again: the coordinator stops waiting and treats us as empty.
  http_.Send(std::move(request), kReportTimeout, [](const Result<net::HttpResponse>& response) {
    if (response && response->status < 300) return;
    Log(LogLevel::kWarning, "inventory not delivered",
        {{"why", response ? response->body : response.error().ToString()}});
  });
}

void ControlClient::Fetch(const std::string& path, Fetched done) {
  http_.Send({.url = path}, kFetchTimeout,
             [this, path, done = std::move(done)](Result<net::HttpResponse> response) mutable {
               if (response && response->status == 200) return done(std::move(response->body));
               if (response && response->status == 404) {
                 return done(Error(Code::kNotFound, path + ": the coordinator has no such thing"));
               }
               Log(LogLevel::kWarning, "the coordinator did not give what was asked, trying again",
                   {{"path", path},
                    {"why", response ? fmt::format("HTTP status {}", response->status)
                                     : response.error().ToString()}});
               const std::uint64_t number = fetches_++;
               fetch_timers_[number] =
                   loop_.After(backoff_.Next(), [this, number, path, done = std::move(done)] {
                     const net::Timer keep = std::move(fetch_timers_[number]);
                     fetch_timers_.erase(number);
                     Fetch(path, done);
                   });
             });
}

}  // namespace optcache::node
