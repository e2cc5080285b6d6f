#include "cli/status.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/state_dir.h"
#include "cli/status_view.h"
#include "coordination/status.h"
#include "net/http_client.h"

namespace optcache::cli {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(5);

struct StatusRequest {
  std::string coordinator;
  std::string state_dir = DefaultStateDir();
  std::string output = "table";
};

Result<std::string> FetchStatus(const std::string& url) {
  net::EventLoop loop;
  const std::unique_ptr<net::HttpClient> client = net::MakeHttpClient(loop);
  std::optional<Result<net::HttpResponse>> answer;
  client->Send({.url = url + "/v1/status"}, kTimeout, [&](Result<net::HttpResponse> response) {
    answer = std::move(response);
    loop.Stop();
  });
  loop.Run();
  if (!*answer) {
    return Error(
        std::move(*answer).error().WithContext("the coordinator at " + url + " does not answer"));
  }
  if ((*answer)->status != 200) {
    return Error(Code::kUnavailable, url + " answers with status " +
                                         std::to_string((*answer)->status) +
                                         ": is it a coordinator of optcache?");
  }
  return (*answer)->body;
}

Status PrintStatus(const StatusRequest& request) {
  ASSIGN_OR_RETURN(const std::string url, FindCoordinator(request.coordinator, request.state_dir));
  ASSIGN_OR_RETURN(const std::string json, FetchStatus(url));
  if (request.output == "json") {
    std::fputs(json.c_str(), stdout);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const coordination::ClusterStatus status,
                   coordination::ParseClusterStatus(json));
  std::fputs(FormatStatus(status).c_str(), stdout);
  return OkStatus();
}

}  // namespace

void AddStatusCommand(CLI::App& app, Verb& chosen) {
  CLI::App* const command =
      app.add_subcommand("status", "Show datasets, nodes and training jobs of a running cache");
  const auto request = std::make_shared<StatusRequest>();
  command->add_option("--coordinator", request->coordinator,
                      "URL of the coordinator; default: $OPTCACHE_COORDINATOR, else the one that "
                      "`optcache up` runs");
  command->add_option("--state", request->state_dir, "Folder of that `optcache up`")
      ->capture_default_str();
  command->add_option("--output,-o", request->output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  command->callback([request, &chosen] { chosen = [request] { return PrintStatus(*request); }; });
}

}  // namespace optcache::cli
