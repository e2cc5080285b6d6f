#pragma once

// The control API (docs/formats/control.md) over a Coordinator: requests in, responses out, long
// polls answered when the state changes. Knows no socket; control_server.h gives it one.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/coordinator.h"
#include "net/http.h"

namespace optcache::control {

struct ControlOptions {
  coordination::CoordinatorOptions coordinator;
  // A node reports only under a name of its certificate.
  bool nodes_prove_names = false;
};

using ManifestBytes = std::shared_ptr<const std::string>;

// Used on one thread.
class ControlService {
 public:
  // A poll that nothing happens to is answered after this long; more than kMaxPolls are refused.
  static constexpr Duration kPollWait = std::chrono::seconds(20);
  static constexpr std::size_t kMaxPolls = 8192;
  // A tick that comes so late ends a pause of this host.
  static constexpr Duration kPause = std::chrono::seconds(5);
  // Of states, a tick: what is sent waits in memory for its receivers.
  static constexpr std::size_t kBytesPerTick = 5'000'000;

  using Respond = std::function<void(net::HttpResponse)>;

  ControlService(const Clock& clock, ControlOptions options)
      : clock_(clock), options_(options), coordinator_(options.coordinator) {}

  // What the coordinator is to serve, and the manifests by digest (hex).
  void SetDatasets(std::vector<coordination::DatasetSpec> specs,
                   std::map<std::string, ManifestBytes> manifests);

  // What Status says of sidecars.
  void SetSidecars(std::vector<coordination::SidecarStatus> sidecars);

  // Calls `respond` once, now or at a later Tick.
  void Handle(const net::HttpRequest& request, Respond respond);

  // About twenty times a second: lets the coordinator weigh what came in and answers polls.
  void Tick();

  const coordination::Coordinator& coordinator() const { return coordinator_; }
  coordination::ClusterStatus Status() const;
  // As Coordinator::CollectSavings.
  coordination::SavingsByDataset CollectSavings() { return coordinator_.CollectSavings(); }
  std::size_t polls() const { return polls_.size(); }

 private:
  struct Poll {
    coordination::Version after;
    MonotonicTime until;
    std::string who;  // by its certificate; empty: has none
    Respond respond;
  };

  optcache::Status CheckSender(const net::HttpRequest& request, const std::string& node) const;
  void AnswerPolls(MonotonicTime now);
  void OnReport(const net::HttpRequest& request, const Respond& respond);
  void OnInventory(const net::HttpRequest& request, const Respond& respond);
  void OnState(const net::HttpRequest& request, Respond respond);
  void OnTrace(const net::HttpRequest& request, const Respond& respond);
  void OnGet(const net::HttpRequest& request, const Respond& respond);

  const Clock& clock_;
  const ControlOptions options_;
  coordination::Coordinator coordinator_;
  std::map<std::string, ManifestBytes, std::less<>> manifests_;
  std::vector<coordination::SidecarStatus> sidecars_;
  std::vector<Poll> polls_;
  std::optional<MonotonicTime> ticked_;
  std::string state_json_;  // of coordinator_.state(), written once for all polls
};

}  // namespace optcache::control
