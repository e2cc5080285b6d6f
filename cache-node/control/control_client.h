#pragma once

// The node's side of the control API (docs/formats/control.md): waits for desired states, reports,
// answers requests for inventories and lists, fetches manifests and
// parts of plans.
//
// While the coordinator is away nothing happens but attempts: the node goes on with what it has.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/backoff.h"
#include "base/log_limit.h"
#include "base/result.h"
#include "cache-node/control/control_http.h"
#include "coordination/state.h"
#include "net/event_loop.h"
#include "net/http_client.h"

namespace optcache::node {

// Used on the loop's thread only.
class ControlClient {
 public:
  struct Options {
    std::string node;               // this node's name
    coordination::Version version;  // of the state in force already
    Duration report_every = std::chrono::seconds(1);
    std::uint64_t seed = 0;  // of the retries' jitter
  };
  struct Hooks {
    std::function<coordination::Report()> report;
    // The coordinator has taken a report with that batch of savings.
    std::function<void(std::uint64_t batch)> answered;
    // A state newer than the one before.
    std::function<void(const coordination::DesiredState&)> apply;
    // The list of ids of that digest, which a report has named; null: it is not here any more.
    std::function<std::shared_ptr<const std::string>(const std::string&)> trace;
    // What the answer to a report says of the limits of stores, and nothing of any when no answer
    // has come: what was said before goes on. Null: it is left there.
    std::function<void(const std::vector<coordination::DatasetShare>&)> shares = nullptr;
  };
  // `http` outlives this.
  ControlClient(net::EventLoop& loop, ControlHttp& http, Options options, Hooks hooks);

  // Begins to wait for states and to report.
  void Start();
  // Something the coordinator should hear now and not at the next turn.
  void ReportSoon();
  void SendInventory(const coordination::Inventory& inventory);

  using Fetched = std::function<void(Result<std::string>)>;
  // The bytes behind a digest; asked again with backoff until they come or `kNotFound`.
  void FetchManifest(const std::string& digest, Fetched done) {
    Fetch("/v1/manifests/" + digest, std::move(done));
  }
  void FetchBase(const std::string& digest, Fetched done) {
    Fetch("/v1/base/" + digest, std::move(done));
  }

  // The joined lists of a pass.
  void FetchTrace(const std::string& digest, Fetched done) {
    Fetch("/v1/traces/" + digest, std::move(done));
  }

  bool connected() const { return connected_; }

 private:
  void Poll();
  void OnState(Result<net::HttpResponse> response);
  void Report();
  void TakeAnswer(const std::string& answer);
  void TakeShares(const std::vector<coordination::DatasetShare>& shares);
  void SendTraces(const std::vector<std::string>& digests);
  void Fetch(const std::string& path, Fetched done);

  net::EventLoop& loop_;
  Options options_;
  Hooks hooks_;
  ControlHttp& http_;
  Backoff backoff_;
  coordination::Version version_;
  bool started_ = false;
  bool connected_ = false;
  bool reporting_ = false;
  bool report_soon_ = false;
  bool report_again_ = false;
  bool told_of_failure_ = false;
  net::Timer poll_timer_;
  net::Timer report_timer_;
  LogLimit passes_log_;
  std::set<std::string> sending_;  // lists, by digest
  std::uint64_t fetches_ = 0;
  std::map<std::uint64_t, net::Timer> fetch_timers_;
};

}  // namespace optcache::node
