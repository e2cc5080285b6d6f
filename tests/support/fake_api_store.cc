#include "support/fake_api_store.h"

#include <algorithm>
#include <sstream>

namespace optcache::kube {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

std::string CollectionOf(const Resource& resource) {
  return resource.Path("").substr(1);
}

std::string QueryOr(const FakeRequest& request, const std::string& name, const char* otherwise) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? otherwise : found->second;
}

bool MatchesLabel(const Json& object, const std::string& term) {
  if (term.starts_with('!')) return !LabelOf(object, term.substr(1));
  const std::size_t equals = term.find('=');
  if (equals == std::string::npos) return LabelOf(object, term).has_value();
  const bool negative = equals > 0 && term[equals - 1] == '!';
  const std::string name = term.substr(0, negative ? equals - 1 : equals);
  const std::string value = term.substr(term.find_last_of('=') + 1);
  return (LabelOf(object, name) == value) != negative;
}

bool MatchesField(const Json& object, const std::string& term) {
  const std::size_t equals = term.find('=');
  std::string pointer = "/" + term.substr(0, equals);
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  return TextAt(object, pointer) == term.substr(equals + 1);
}

bool Selected(const Json& object, const std::string& ns, const FakeRequest& request) {
  if (!ns.empty() && KeyOf(object).ns != ns) return false;
  for (const std::string& term : Split(QueryOr(request, "labelSelector", ""), ',')) {
    if (!MatchesLabel(object, term)) return false;
  }
  for (const std::string& term : Split(QueryOr(request, "fieldSelector", ""), ',')) {
    if (!MatchesField(object, term)) return false;
  }
  return true;
}

// Entries of associative lists are told apart so; of other lists nothing is.
const char* ListKey(const Json& list) {
  for (const char* key : {"name", "type", "uid"}) {
    const bool all = !list.empty() && std::all_of(list.begin(), list.end(), [&](const Json& entry) {
      return entry.is_object() && entry.contains(key);
    });
    if (all) return key;
  }
  return nullptr;
}

Json* EntryOf(Json& list, const char* key, const Json& value) {
  for (Json& entry : list) {
    if (entry.is_object() && entry.value(key, Json()) == value) return &entry;
  }
  return nullptr;
}

void Merge(Json& into, const Json& from) {
  if (from.is_object() && into.is_object()) {
    for (const auto& [key, value] : from.items())
      Merge(into[key], value);
    return;
  }
  const char* key = from.is_array() && into.is_array() ? ListKey(from) : nullptr;
  if (key == nullptr) {
    into = from;
    return;
  }
  for (const Json& entry : from) {
    if (Json* found = EntryOf(into, key, entry[key])) {
      Merge(*found, entry);
    } else {
      into.push_back(entry);
    }
  }
}

// Takes out of `object` what `before` had and `after` has no more.
void TakeBack(Json& object, const Json& before, const Json& after) {
  if (before.is_object() && object.is_object()) {
    for (const auto& [key, value] : before.items()) {
      if (!object.contains(key)) continue;
      if (!after.is_object() || !after.contains(key)) {
        object.erase(key);
      } else {
        TakeBack(object[key], value, after[key]);
      }
    }
    return;
  }
  const char* key = before.is_array() && object.is_array() ? ListKey(before) : nullptr;
  if (key == nullptr || !after.is_array()) return;
  for (const Json& entry : before) {
    Json copy = after;
    if (EntryOf(copy, key, entry[key]) != nullptr) continue;
    const Json* gone = EntryOf(object, key, entry[key]);
    if (gone != nullptr) object.erase(static_cast<std::size_t>(gone - &object[0]));
  }
}

// Does `theirs` say something else about what `ours` speaks of?
bool Conflicts(const Json& ours, const Json& theirs) {
  if (ours.is_object() && theirs.is_object()) {
    return std::any_of(ours.items().begin(), ours.items().end(), [&](const auto& item) {
      return theirs.contains(item.key()) && Conflicts(item.value(), theirs[item.key()]);
    });
  }
  return !ours.is_object() && ours != theirs;
}

// The part of an object that a subresource may not touch, and its rest may.
void KeepStatus(const std::string& subresource, const Json& current, Json& object) {
  if (subresource == "status") {
    Json status = object.contains("status") ? object["status"] : Json();
    object = current;
    if (!status.is_null()) object["status"] = std::move(status);
  } else if (current.contains("status")) {
    object["status"] = current["status"];
  } else {
    object.erase("status");
  }
}

}  // namespace

FakeResponse FakeError(int status, const std::string& reason, const std::string& message) {
  return {.status = status,
          .body = {{"kind", "Status"},
                   {"apiVersion", "v1"},
                   {"status", "Failure"},
                   {"code", status},
                   {"reason", reason},
                   {"message", message}}};
}

std::optional<FakeTarget> ParseFakePath(const std::string& path) {
  std::vector<std::string> parts = Split(path.substr(1), '/');
  const std::size_t prefix = !parts.empty() && parts[0] == "api" ? 2 : 3;
  if (parts.size() <= prefix) return std::nullopt;
  FakeTarget target;
  std::size_t at = prefix;
  if (parts[at] == "namespaces" && parts.size() > at + 2) {
    target.key.ns = parts[at + 1];
    at += 2;
  }
  for (std::size_t i = 0; i < prefix; ++i)
    target.collection += parts[i] + "/";
  target.collection += parts[at];
  if (parts.size() > at + 1) target.key.name = parts[at + 1];
  if (parts.size() > at + 2) target.subresource = parts[at + 2];
  return target;
}

FakeResponse FakeApiStore::Handle(const FakeRequest& request) {
  const auto target = ParseFakePath(request.path);
  if (!target) return FakeError(404, "NotFound", "no such path");
  Json body = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (request.method == "POST") return Create(*target, std::move(body));
  if (request.method == "PUT") return Update(*target, body);
  if (request.method == "PATCH") return Apply(*target, request);
  if (request.method == "DELETE") return Delete(*target, body);
  if (target->key.name.empty()) return ListPage(*target, request);
  const auto collection = collections_.find(target->collection);
  if (collection == collections_.end() || !collection->second.contains(target->key)) {
    return FakeError(404, "NotFound", target->key.ToString() + " not found");
  }
  return {.body = collection->second.at(target->key)};
}

FakeResponse FakeApiStore::ListPage(const FakeTarget& target, const FakeRequest& request) const {
  // A token is the version of the first page and the key after which to go on.
  std::uint64_t version = version_;
  ObjectKey after;
  if (const std::string token = QueryOr(request, "continue", ""); !token.empty()) {
    std::istringstream stream(token);
    stream >> version >> after.ns >> after.name;
    if (after.ns == "-") after.ns.clear();
    if (version < compacted_) return FakeError(410, "Expired", "the continue token is too old");
  }
  const std::size_t limit = std::stoul(QueryOr(request, "limit", "0"));
  Json list = {{"kind", "List"},
               {"apiVersion", "v1"},
               {"metadata", {{"resourceVersion", std::to_string(version)}}},
               {"items", Json::array()}};
  const auto collection = collections_.find(target.collection);
  if (collection == collections_.end()) return {.body = list};
  for (const auto& [key, object] : collection->second) {
    if (key <= after || !Selected(object, target.key.ns, request)) continue;
    if (limit > 0 && list["items"].size() == limit) {
      const ObjectKey last = KeyOf(list["items"].back());
      list["metadata"]["continue"] =
          std::to_string(version) + " " + (last.ns.empty() ? "-" : last.ns) + " " + last.name;
      break;
    }
    list["items"].push_back(object);
  }
  return {.body = list};
}

FakeResponse FakeApiStore::Create(const FakeTarget& target, Json object) {
  if (target.collection.ends_with("tokenreviews")) return ReviewToken(std::move(object));
  if (std::find(terminating_.begin(), terminating_.end(), target.key.ns) != terminating_.end()) {
    FakeResponse error = FakeError(403, "Forbidden", "the namespace is being terminated");
    error.body["details"]["causes"] = Json::array({{{"reason", "NamespaceTerminating"}}});
    return error;
  }
  FakeTarget made = target;
  made.key.name = KeyOf(object).name;
  if (made.key.name.empty()) {
    made.key.name = TextAt(object, "/metadata/generateName") + std::to_string(last_uid_ + 1);
  }
  if (collections_[made.collection].contains(made.key)) {
    return FakeError(409, "AlreadyExists", made.key.ToString() + " already exists");
  }
  object["metadata"]["name"] = made.key.name;
  if (!made.key.ns.empty()) object["metadata"]["namespace"] = made.key.ns;
  FakeResponse response = Store(made, std::move(object));
  response.status = 201;
  return response;
}

FakeResponse FakeApiStore::Update(const FakeTarget& target, const Json& object) {
  const Objects& objects = collections_[target.collection];
  const auto found = objects.find(target.key);
  if (found == objects.end()) return FakeError(404, "NotFound", "not found");
  const std::string version = ResourceVersionOf(object);
  if (!version.empty() && version != ResourceVersionOf(found->second)) {
    return FakeError(409, "Conflict", "the object has been modified");
  }
  Json updated = object;
  KeepStatus(target.subresource, found->second, updated);
  return Store(target, std::move(updated));
}

FakeResponse FakeApiStore::Apply(const FakeTarget& target, const FakeRequest& request) {
  const auto type = request.headers.find("content-type");
  if (type == request.headers.end() || type->second != "application/apply-patch+yaml") {
    return FakeError(415, "UnsupportedMediaType", "this fake knows only apply patches");
  }
  const std::string manager = QueryOr(request, "fieldManager", "");
  if (manager.empty()) return FakeError(400, "BadRequest", "an apply needs a fieldManager");
  const Json wanted = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  Objects& objects = collections_[target.collection];
  const auto found = objects.find(target.key);
  if (found == objects.end() && !target.subresource.empty()) {
    return FakeError(404, "NotFound", "not found");
  }
  const auto slot = std::tuple(target.collection, target.key, manager, target.subresource);
  if (QueryOr(request, "force", "") != "true") {
    for (const auto& [other, config] : applied_) {
      const auto& [collection, key, name, subresource] = other;
      const bool same = collection == target.collection && key == target.key;
      if (same && name != manager && Conflicts(wanted, config)) {
        return FakeError(409, "Conflict", "Apply failed with a conflict with \"" + name + "\"");
      }
    }
  }
  if (const std::string version = ResourceVersionOf(wanted);
      found != objects.end() && !version.empty() && version != ResourceVersionOf(found->second)) {
    return FakeError(409, "Conflict", "the object has been modified");
  }
  if (found == objects.end()) {
    FakeResponse made = Create(target, wanted);
    if (made.status == 201) applied_[slot] = wanted;
    return made;
  }
  Json merged = found->second;
  TakeBack(merged, applied_[slot], wanted);
  Merge(merged, wanted);
  KeepStatus(target.subresource, found->second, merged);
  applied_[slot] = wanted;
  return Store(target, std::move(merged));
}

FakeResponse FakeApiStore::Delete(const FakeTarget& target, const Json& options) {
  Objects& objects = collections_[target.collection];
  const auto found = objects.find(target.key);
  if (found == objects.end()) return FakeError(404, "NotFound", "not found");
  for (const char* part : {"uid", "resourceVersion"}) {
    const std::string wanted = TextAt(options, std::string("/preconditions/") + part);
    if (!wanted.empty() && wanted != TextAt(found->second, std::string("/metadata/") + part)) {
      return FakeError(409, "Conflict", "a precondition failed");
    }
  }
  Json object = std::move(found->second);
  objects.erase(found);
  std::erase_if(applied_, [&](const auto& entry) {
    return std::get<0>(entry.first) == target.collection && std::get<1>(entry.first) == target.key;
  });
  const Json before = object;
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  history_.push_back({version_, "DELETED", target.collection, object, before});
  return {.body = {{"kind", "Status"}, {"status", "Success"}}};
}

FakeResponse FakeApiStore::ReviewToken(Json review) const {
  const auto found = tokens_.find(TextAt(review, "/spec/token"));
  if (found == tokens_.end()) {
    review["status"] = {{"authenticated", false}, {"error", "unknown token"}};
  } else {
    review["status"] = {{"authenticated", true}, {"user", found->second}};
    if (review["spec"].contains("audiences")) {
      review["status"]["audiences"] = review["spec"]["audiences"];
    }
  }
  return {.status = 201, .body = std::move(review)};
}

// Gives the object what the server gives; nothing happens if nothing changes.
FakeResponse FakeApiStore::Store(const FakeTarget& target, Json object) {
  Objects& objects = collections_[target.collection];
  const auto found = objects.find(target.key);
  const Json before = found == objects.end() ? Json() : found->second;
  Json& metadata = object["metadata"];
  if (before.is_null()) {
    metadata["uid"] = "uid-" + std::to_string(++last_uid_);
    if (!metadata.contains("creationTimestamp"))
      metadata["creationTimestamp"] = "2027-01-15T08:00:00Z";
    metadata["generation"] = 1;
  } else {
    for (const char* kept : {"uid", "creationTimestamp", "generation", "resourceVersion"}) {
      const Json& old = before["metadata"];
      if (old.contains(kept)) metadata[kept] = old[kept];
    }
    if (object == before) return {.body = object};
    if (kube::Find(object, "/spec") != kube::Find(before, "/spec")) {
      metadata["generation"] = GenerationOf(before) + 1;
    }
  }
  metadata["resourceVersion"] = std::to_string(++version_);
  history_.push_back(
      {version_, before.is_null() ? "ADDED" : "MODIFIED", target.collection, object, before});
  objects[target.key] = object;
  return {.body = object};
}

void FakeApiStore::Put(const Resource& resource, Json object) {
  const ObjectKey key = KeyOf(object);
  if (!object.contains("apiVersion")) {
    object["apiVersion"] = resource.ApiVersion();
    object["kind"] = resource.kind;
  }
  Store({.collection = CollectionOf(resource), .key = key, .subresource = ""}, std::move(object));
}

void FakeApiStore::Remove(const Resource& resource, const ObjectKey& key) {
  Delete({.collection = CollectionOf(resource), .key = key, .subresource = ""}, Json());
}

Json FakeApiStore::Find(const Resource& resource, const ObjectKey& key) const {
  const auto collection = collections_.find(CollectionOf(resource));
  if (collection == collections_.end()) return {};
  const auto found = collection->second.find(key);
  return found == collection->second.end() ? Json() : found->second;
}

std::vector<Json> FakeApiStore::List(const Resource& resource) const {
  std::vector<Json> objects;
  const auto collection = collections_.find(CollectionOf(resource));
  if (collection == collections_.end()) return objects;
  for (const auto& [key, object] : collection->second)
    objects.push_back(object);
  return objects;
}

std::vector<Json> FakeApiStore::EventsAfter(const FakeRequest& request,
                                            std::uint64_t& version) const {
  std::vector<Json> events;
  const auto target = ParseFakePath(request.path);
  if (!target) return events;
  for (const Change& change : history_) {
    if (change.version <= version || change.collection != target->collection) continue;
    const bool was = !change.before.is_null() && Selected(change.before, target->key.ns, request);
    const bool is = change.type != "DELETED" && Selected(change.object, target->key.ns, request);
    if (!was && !is) continue;
    const char* type = !is ? "DELETED" : was ? "MODIFIED" : "ADDED";
    events.push_back({{"type", type}, {"object", change.object}});
  }
  version = version_;
  return events;
}

}  // namespace optcache::kube
