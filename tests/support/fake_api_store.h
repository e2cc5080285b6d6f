#pragma once

// What a Kubernetes API server keeps and how it answers, without HTTP: objects of any kind with
// resource versions, generations, server-side apply, pages, and the history that watches follow.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kube/object.h"

namespace optcache::kube {

struct FakeRequest {
  std::string method;
  std::string path;
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct FakeResponse {
  int status = 200;
  Json body;
  std::map<std::string, std::string> headers;
};

// A Status object.
FakeResponse FakeError(int status, const std::string& reason, const std::string& message);

// Where in a path what stands.
struct FakeTarget {
  std::string collection;  // "apis/batch/v1/jobs"
  ObjectKey key;
  std::string subresource;
};
std::optional<FakeTarget> ParseFakePath(const std::string& path);

// Not thread-safe.
class FakeApiStore {
 public:
  // Anything but a watch.
  FakeResponse Handle(const FakeRequest& request);

  // As if somebody had used kubectl. The object names its kind by apiVersion and kind's `resource`.
  // Creates it or replaces it, status included. A creationTimestamp that it brings is believed.
  void Put(const Resource& resource, Json object);
  void Remove(const Resource& resource, const ObjectKey& key);
  // Null if there is none.
  Json Find(const Resource& resource, const ObjectKey& key) const;
  std::vector<Json> List(const Resource& resource) const;

  // What happened so far is history: watches and pages from before it are expired.
  void Compact() { compacted_ = version_; }
  std::uint64_t version() const { return version_; }
  std::uint64_t compacted() const { return compacted_; }

  // The lines of a watch after `version`, which moves on: selected as in `request`.
  std::vector<Json> EventsAfter(const FakeRequest& request, std::uint64_t& version) const;

  // Who a token is of; others are not authenticated.
  void SetToken(const std::string& token, Json user) { tokens_[token] = std::move(user); }
  // Nothing can be created there any more.
  void TerminateNamespace(const std::string& ns) { terminating_.push_back(ns); }

 private:
  struct Change {
    std::uint64_t version = 0;
    std::string type;
    std::string collection;
    Json object;
    Json before;
  };
  using Objects = std::map<ObjectKey, Json>;

  FakeResponse ListPage(const FakeTarget& target, const FakeRequest& request) const;
  FakeResponse Create(const FakeTarget& target, Json object);
  FakeResponse Update(const FakeTarget& target, const Json& object);
  FakeResponse Apply(const FakeTarget& target, const FakeRequest& request);
  FakeResponse Delete(const FakeTarget& target, const Json& options);
  FakeResponse ReviewToken(Json review) const;
  FakeResponse Store(const FakeTarget& target, Json object);

  std::map<std::string, Objects> collections_;
  // What each manager applied last, by collection, object, manager and subresource.
  std::map<std::tuple<std::string, ObjectKey, std::string, std::string>, Json> applied_;
  std::vector<Change> history_;
  std::map<std::string, Json> tokens_;
  std::vector<std::string> terminating_;
  std::uint64_t version_ = 100;
  std::uint64_t compacted_ = 0;
  std::uint64_t last_uid_ = 0;
};

}  // namespace optcache::kube
