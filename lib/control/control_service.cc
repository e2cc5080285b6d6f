// Serves a Coordinator over HTTP: answers requests at once, and polls at ticks.
//
// The idea: a report changes what the coordinator knows, and only a tick changes the state. So GET
// /v1/state always waits in `polls_`, and Tick, after the coordinator's, answers polls to which the
// state is news. The state is written as JSON once a version, and at most kBytesPerTick of it go
// out a tick: a thousand answers would otherwise lie in memory at a time.
//
// Invariants: a poll is answered once: by a newer state, by 204 when its time is over, or by 204
// when the same node polls again. With nodes_prove_names a node speaks only for the name in its
// certificate. A tick that comes late is told to the coordinator as a pause, so that nobody's
// silence is counted.

#include "control/control_service.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "control/error_response.h"
#include "coordination/codec.h"

namespace optcache::control {
namespace {

constexpr std::string_view kBasePath = "/v1/base/";
constexpr std::string_view kTracePath = "/v1/traces/";
constexpr std::string_view kManifestPath = "/v1/manifests/";

net::HttpResponse Bytes(const ManifestBytes& bytes, std::string_view what) {
  if (bytes == nullptr) {
    return ErrorResponse({Code::kNotFound, fmt::format("no {} of this digest", what)});
  }
  return {.status = 200,
          .headers = {{"Content-Type", "application/octet-stream"}},
          .shared_body = bytes};
}

}  // namespace

void ControlService::SetDatasets(std::vector<coordination::DatasetSpec> specs,
                                 std::map<std::string, ManifestBytes> manifests) {
  coordinator_.SetDatasets(std::move(specs), clock_.Now());
  std::erase_if(manifests_, [&](const auto& item) { return !coordinator_.Names(item.first); });
  for (auto& [digest, bytes] : manifests)
    manifests_.insert_or_assign(digest, std::move(bytes));
}

void ControlService::SetSidecars(std::vector<coordination::SidecarStatus> sidecars) {
  sidecars_ = std::move(sidecars);
}

coordination::ClusterStatus ControlService::Status() const {
  coordination::ClusterStatus status = coordinator_.Snapshot(clock_.Now());
  status.sidecars = sidecars_;
  return status;
}

void ControlService::Handle(const net::HttpRequest& request, Respond respond) {
  const std::string_view path = request.path();
  const bool post = request.method == "POST";
  if (path == "/v1/report" && post) return OnReport(request, respond);
  if (path == "/v1/inventory" && post) return OnInventory(request, respond);
  if (path.starts_with(kTracePath) && post) return OnTrace(request, respond);
  if (request.method != "GET") {
    return respond(
        net::HttpResponse::Text(405, "GET, or POST to /v1/report, /v1/inventory and /v1/traces\n"));
  }
  if (path == "/v1/state") return OnState(request, std::move(respond));
  OnGet(request, respond);
}

// Who has a certificate speaks for its own pod alone.
optcache::Status ControlService::CheckSender(const net::HttpRequest& request,
                                             const std::string& node) const {
  if (!options_.nodes_prove_names || request.peer.Is(node)) return OkStatus();
  return {Code::kPermissionDenied, "the certificate is not that of node " + node};
}

void ControlService::OnReport(const net::HttpRequest& request, const Respond& respond) {
  const Result<coordination::Report> report = coordination::ParseReport(request.body);
  if (!report) return respond(ErrorResponse(report.error()));
  if (const auto status = CheckSender(request, report->node); !status.ok()) {
    return respond(ErrorResponse(status));
  }
  const auto answer = coordinator_.OnReport(*report, clock_.Now());
  if (!answer) return respond(ErrorResponse(answer.error()));
  respond(net::HttpResponse::Json(200, coordination::ToJson(*answer)));
}

void ControlService::OnInventory(const net::HttpRequest& request, const Respond& respond) {
  const Result<coordination::Inventory> inventory = coordination::ParseInventory(request.body);
  if (!inventory) return respond(ErrorResponse(inventory.error()));
  if (const auto status = CheckSender(request, inventory->node); !status.ok()) {
    return respond(ErrorResponse(status));
  }
  if (const optcache::Status status = coordinator_.OnInventory(*inventory); !status.ok()) {
    return respond(ErrorResponse(status));
  }
  respond(net::HttpResponse{.status = 204});
}

void ControlService::OnTrace(const net::HttpRequest& request, const Respond& respond) {
  const std::string node = request.query("node").value_or("");
  const std::string_view digest = request.path().substr(kTracePath.size());
  optcache::Status status = CheckSender(request, node);
  if (status.ok()) status = coordinator_.OnTrace(node, digest, request.body);
  respond(status.ok() ? net::HttpResponse{.status = 204} : ErrorResponse(status));
}

void ControlService::OnState(const net::HttpRequest& request, Respond respond) {
  const std::string after = request.query("after").value_or("0.0");
  const Result<coordination::Version> version = coordination::ParseVersion(after);
  if (!version) {
    return respond(ErrorResponse(optcache::Status(version.error()).WithContext("after")));
  }
  if (polls_.size() >= kMaxPolls) {
    return respond(ErrorResponse({Code::kResourceExhausted, "too many polls are open"}));
  }
  // A node has one poll: what it left behind, when its connection broke, is over.
  std::string who = request.peer.dns_names.empty() ? "" : request.peer.dns_names.back();
  const auto old = std::ranges::find(polls_, who, &Poll::who);
  if (!who.empty() && old != polls_.end()) {
    const Respond end = std::move(old->respond);
    polls_.erase(old);
    end(net::HttpResponse{.status = 204});
  }
  polls_.push_back({.after = *version,
                    .until = clock_.Now() + kPollWait,
                    .who = std::move(who),
                    .respond = std::move(respond)});
}

void ControlService::OnGet(const net::HttpRequest& request, const Respond& respond) {
  const std::string_view path = request.path();
  if (path.starts_with(kBasePath)) {
    return respond(Bytes(coordinator_.BaseBytes(path.substr(kBasePath.size())), "base"));
  }
  if (path.starts_with(kTracePath)) {
    return respond(Bytes(coordinator_.TraceBytes(path.substr(kTracePath.size())), "list"));
  }
  if (path.starts_with(kManifestPath)) {
    const auto found = manifests_.find(path.substr(kManifestPath.size()));
    return respond(Bytes(found == manifests_.end() ? nullptr : found->second, "manifest"));
  }
  if (path == "/v1/status") {
    return respond(net::HttpResponse::Json(200, coordination::ToJson(Status()) + "\n"));
  }
  if (path == "/healthz" || path == "/readyz") {
    return respond(net::HttpResponse::Text(200, "ok\n"));
  }
  respond(ErrorResponse({Code::kNotFound, "try /v1/status, /metrics or /healthz"}));
}

void ControlService::Tick() {
  const coordination::Version before = coordinator_.state().version;
  const MonotonicTime now = clock_.Now();
  if (ticked_ && now - *ticked_ > kPause) coordinator_.OnPause(now - *ticked_);
  ticked_ = now;
  coordinator_.OnTick(now);
  const coordination::DesiredState& state = coordinator_.state();
  if (state.version != before || state_json_.empty()) state_json_ = coordination::ToJson(state);
  AnswerPolls(now);
}

// Who has waited longest comes first. A state of 100 KB goes out to 1,000 nodes within a second,
// and one of 1 MB takes ten: neither is in memory a thousand times.
void ControlService::AnswerPolls(MonotonicTime now) {
  std::vector<Poll> waiting;
  waiting.swap(polls_);
  std::size_t sent = 0;
  for (Poll& poll : waiting) {
    const bool has_news = coordinator_.state().version > poll.after;
    if (has_news && sent < kBytesPerTick) {
      poll.respond(net::HttpResponse::Json(200, state_json_));
      sent += state_json_.size();
    } else if (!has_news && now >= poll.until) {
      poll.respond(net::HttpResponse{.status = 204});
    } else {
      polls_.push_back(std::move(poll));
    }
  }
}

}  // namespace optcache::control
