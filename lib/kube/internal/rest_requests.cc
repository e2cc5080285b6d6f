#include "kube/internal/rest_requests.h"

#include <chrono>

#include <fmt/format.h>

#include "base/percent_encoding.h"

namespace optcache::kube {
namespace {

// What a query adds to an address: nothing if there is none.
std::string QueryPart(const QueryFields& query) {
  return query.empty() ? "" : "?" + QueryString(query);
}

}  // namespace

std::string_view HttpMethod(Verb verb) {
  switch (verb) {
    case Verb::kGet:
    case Verb::kList:
      return "GET";
    case Verb::kCreate:
      return "POST";
    case Verb::kUpdate:
      return "PUT";
    case Verb::kApply:
      return "PATCH";
    case Verb::kDelete:
      break;
  }
  return "DELETE";
}

std::string_view VerbName(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kApply:
      return "apply";
    case Verb::kDelete:
      break;
  }
  return "delete";
}

std::string Describe(const ApiRequest& request) {
  std::string kind(request.resource.plural);
  if (!request.subresource.empty()) kind.append("/").append(request.subresource);
  const std::string key = request.key.name.empty() ? request.key.ns : request.key.ToString();
  return fmt::format("{} {}{}{}", VerbName(request.verb), kind, key.empty() ? "" : " ", key);
}

std::string Describe(const WatchRequest& request) {
  return fmt::format("watch {}", request.resource.plural);
}

net::HttpRequest ToHttp(const std::string& server, const ApiRequest& request,
                        net::HttpHeaders headers) {
  if (!request.body.empty()) {
    headers.emplace_back("Content-Type", request.verb == Verb::kApply
                                             ? "application/apply-patch+yaml"
                                             : "application/json");
  }
  return {.method = std::string(HttpMethod(request.verb)),
          .url = server +
                 request.resource.Path(request.key.ns, request.key.name, request.subresource) +
                 QueryPart(request.query),
          .headers = std::move(headers),
          .body = request.body};
}

net::HttpRequest ToHttp(const std::string& server, const WatchRequest& request,
                        net::HttpHeaders headers) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(request.timeout).count();
  std::vector<std::pair<std::string, std::string>> query = {
      {"watch", "true"},
      {"allowWatchBookmarks", "true"},
      {"resourceVersion", request.resource_version},
      {"timeoutSeconds", std::to_string(seconds)}};
  if (!request.selection.labels.empty()) {
    query.emplace_back("labelSelector", request.selection.labels);
  }
  if (!request.selection.fields.empty()) {
    query.emplace_back("fieldSelector", request.selection.fields);
  }
  return {.method = "GET",
          .url = server + request.resource.Path(request.selection.ns) + QueryPart(query),
          .headers = std::move(headers),
          .body = ""};
}

}  // namespace optcache::kube
