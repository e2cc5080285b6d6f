// Builds all calls of a client from Call alone.
//
// The idea: a client is two virtual functions (over HTTP, fenced by a leadership, or a fake), and
// all verbs are requests built here. List asks page by page, so that one answer never holds
// everything that the server has; a PagedList lives in the callbacks between two pages. A limit on
// the objects bounds the sum. A token that is not authenticated is a result and no error, since the
// server has answered.

#include "kube/client.h"

#include <utility>

#include <fmt/format.h>

namespace optcache::kube {
namespace {

std::string_view ToText(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      break;
  }
  return "Orphan";
}

std::vector<std::string> TextsAt(const Json& object, std::string_view pointer) {
  std::vector<std::string> texts;
  for (const Json& item : Items(object, pointer)) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

// A list that goes on page by page; its client outlives it, as it lives in callbacks only.
struct PagedList {
  Client& client;
  Resource resource;
  Selection selection;
  Client::ObjectCallback callback;
  Json all;
};

void NextPage(const std::shared_ptr<PagedList>& list, const std::string& continue_token) {
  list->client.ListPage(
      list->resource, list->selection, kPageLimit, continue_token, [list](ApiResult<Json> page) {
        if (!page) return list->callback(std::move(page));
        Json items = std::move((*page)["items"]);
        const std::string token = TextAt(*page, "/metadata/continue");
        if (list->all.is_null()) {
          list->all = *std::move(page);
          list->all["items"] = Json::array();
        }
        Json& all = list->all["items"];
        for (Json& item : items)
          all.push_back(std::move(item));
        if (token.empty()) return list->callback(std::move(list->all));
        if (all.size() < kMaxListedObjects) return NextPage(list, token);
        list->callback(std::unexpected(MakeApiError(Status(
            Code::kResourceExhausted,
            fmt::format("there are more than {} {}", kMaxListedObjects, list->resource.plural)))));
      });
}

}  // namespace

void Client::Get(const Resource& resource, const ObjectKey& key, ObjectCallback callback) {
  Call({.verb = Verb::kGet, .resource = resource, .key = key}, std::move(callback));
}

void Client::ListPage(const Resource& resource, const Selection& selection, std::uint32_t limit,
                      const std::string& continue_token, ObjectCallback callback) {
  ApiRequest request{
      .verb = Verb::kList, .resource = resource, .key = {.ns = selection.ns, .name = ""}};
  auto& query = request.query;
  if (!selection.labels.empty()) query.emplace_back("labelSelector", selection.labels);
  if (!selection.fields.empty()) query.emplace_back("fieldSelector", selection.fields);
  if (limit > 0) query.emplace_back("limit", std::to_string(limit));
  if (!continue_token.empty()) query.emplace_back("continue", continue_token);
  Call(std::move(request), [resource, callback = std::move(callback)](ApiResult<Json> page) {
    if (page && !Find(*page, "/items").is_array()) {
      // An empty list of some kinds has null.
      if (!Find(*page, "/items").is_null() || !page->is_object()) {
        return callback(std::unexpected(MakeApiError(
            Status(Code::kDataLoss, fmt::format("list {}: not a list", resource.plural)))));
      }
      (*page)["items"] = Json::array();
    }
    callback(std::move(page));
  });
}

void Client::List(const Resource& resource, const Selection& selection, ObjectCallback callback) {
  NextPage(std::make_shared<PagedList>(
               PagedList{*this, resource, selection, std::move(callback), Json()}),
           "");
}

void Client::Create(const Resource& resource, const Json& object, ObjectCallback callback) {
  Call({.verb = Verb::kCreate,
        .resource = resource,
        .key = {.ns = KeyOf(object).ns, .name = ""},
        .body = ToText(object)},
       std::move(callback));
}

void Client::Update(const Resource& resource, const Json& object, ObjectCallback callback) {
  Call({.verb = Verb::kUpdate, .resource = resource, .key = KeyOf(object), .body = ToText(object)},
       std::move(callback));
}

void Client::Apply(const Resource& resource, const Json& object, const ApplyOptions& options,
                   ObjectCallback callback) {
  ApiRequest request{.verb = Verb::kApply,
                     .resource = resource,
                     .key = KeyOf(object),
                     .subresource = options.subresource,
                     .query = {{"fieldManager", options.field_manager}},
                     .body = ToText(object)};
  if (options.force) request.query.emplace_back("force", "true");
  if (options.dry_run) request.query.emplace_back("dryRun", "All");
  Call(std::move(request), std::move(callback));
}

void Client::Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options,
                    DoneCallback callback) {
  Call({.verb = Verb::kDelete, .resource = resource, .key = key, .body = ToText(ToJson(options))},
       [callback = std::move(callback)](ApiResult<Json> result) {
         if (!result) return callback(std::unexpected(std::move(result).error()));
         callback({});
       });
}

void Client::ReviewToken(const std::string& token, const std::vector<std::string>& audiences,
                         ReviewCallback callback) {
  Json review = {{"apiVersion", kTokenReviews.ApiVersion()},
                 {"kind", kTokenReviews.kind},
                 {"spec", {{"token", token}}}};
  if (!audiences.empty()) review["spec"]["audiences"] = audiences;
  Create(kTokenReviews, review, [callback = std::move(callback)](const ApiResult<Json>& result) {
    if (!result) return callback(std::unexpected(result.error()));
    auto parsed = ParseTokenReview(*result);
    if (!parsed) return callback(std::unexpected(MakeApiError(std::move(parsed).error())));
    callback(*std::move(parsed));
  });
}

Json ToJson(const DeleteOptions& options) {
  Json json = {{"apiVersion", "v1"},
               {"kind", "DeleteOptions"},
               {"propagationPolicy", ToText(options.propagation)}};
  if (!options.uid.empty()) json["preconditions"]["uid"] = options.uid;
  if (!options.resource_version.empty()) {
    json["preconditions"]["resourceVersion"] = options.resource_version;
  }
  return json;
}

Result<TokenReview> ParseTokenReview(const Json& object) {
  if (!Find(object, "/status").is_object()) {
    return Error(Code::kInvalidArgument, "review of a token: the answer has no status");
  }
  TokenReview review{.authenticated = BoolAt(object, "/status/authenticated"),
                     .username = TextAt(object, "/status/user/username"),
                     .uid = TextAt(object, "/status/user/uid"),
                     .groups = TextsAt(object, "/status/user/groups"),
                     .extra = {},
                     .audiences = TextsAt(object, "/status/audiences"),
                     .error = TextAt(object, "/status/error")};
  const Json& extra = Find(object, "/status/user/extra");
  if (!extra.is_object()) return review;
  for (const auto& [name, values] : extra.items())
    review.extra.emplace(name, TextsAt(extra, "/" + PointerStep(name)));
  return review;
}

}  // namespace optcache::kube
