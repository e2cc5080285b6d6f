#pragma once

// The API server as a client sees it: requests that end in a callback, and watches.
//
//   client->Get(kPods, {.ns = "vision", .name = "train-0"}, [](const ApiResult<Json>& pod) { ...
//   });

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kube/api_error.h"
#include "kube/object.h"
#include "kube/resources.h"

namespace optcache::kube {

enum class Verb { kGet, kList, kCreate, kUpdate, kApply, kDelete };

inline bool IsWrite(Verb verb) {
  return verb != Verb::kGet && verb != Verb::kList;
}

// Until when a process may write; nothing: not (any more).
using WritePermit = std::function<std::optional<MonotonicTime>()>;

struct ApiRequest {
  Verb verb = Verb::kGet;
  Resource resource;
  ObjectKey key;  // name empty for lists and where the server makes it up
  std::string subresource;
  std::vector<std::pair<std::string, std::string>> query;  // not yet encoded
  std::string body;                                        // JSON
  Duration timeout{};                                      // zero: the client's own
  // If set: asked when the request is sent, each time. It gets no more time than the permit has
  // left; without one it ends with kCancelled, unsent.
  WritePermit permit;
};

// What a list or watch is about. Empty: everything.
struct Selection {
  std::string ns;
  std::string labels;  // "app=x,!legacy"
  std::string fields;  // "spec.nodeName=node7"
};

struct ApplyOptions {
  std::string field_manager;
  // Take over fields that another manager owns, as controllers do. Otherwise: a conflict.
  bool force = true;
  std::string subresource;  // "status"
  bool dry_run = false;
};

enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  // Preconditions: delete this very object and no other of its name. kConflict if it is not.
  std::string uid;
  std::string resource_version;
  Propagation propagation = Propagation::kBackground;
};

struct TokenReview {
  bool authenticated = false;
  std::string username;  // "system:serviceaccount:vision:default"
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;  // "authentication.kubernetes.io/pod-name"
  std::vector<std::string> audiences;
  std::string error;  // why it is not authenticated, if the server says so
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchEvent {
  WatchEventType type = WatchEventType::kAdded;
  Json object;
};

struct WatchRequest {
  Resource resource;
  Selection selection;
  std::string resource_version;
  Duration timeout{};        // the server ends the watch by itself after this long
  Duration idle_deadline{};  // a watch on which nothing at all comes for this long is dead
};

struct WatchCallbacks {
  std::function<void(WatchEvent)> on_event;
  // Last call, once: nothing if the server ended the watch in order, else why it broke, ERROR
  // events of the stream included.
  std::function<void(std::optional<ApiError>)> on_end;
};

// A watch under way. Destroying it ends the watch; then nothing is called any more.
class WatchHandle {
 public:
  virtual ~WatchHandle() = default;
};

// Used on the loop's thread only. Callbacks come once, never from within the call, and not after
// the client has died; an owner that may die before the client guards its own.
class Client {
 public:
  using ObjectCallback = std::function<void(ApiResult<Json>)>;
  using DoneCallback = std::function<void(ApiResult<void>)>;
  using ReviewCallback = std::function<void(ApiResult<TokenReview>)>;

  virtual ~Client() = default;

  // The two that all others stand on. The result of a request is the answer's body; 429 and
  // overload are waited out as the server asks (Retry-After) as long as the timeout allows.
  virtual void Call(ApiRequest request, ObjectCallback callback) = 0;
  virtual std::unique_ptr<WatchHandle> Watch(WatchRequest request, WatchCallbacks callbacks) = 0;

  void Get(const Resource& resource, const ObjectKey& key, ObjectCallback callback);

  // One page, or what follows it (`continue_token`), as a List object. `limit` 0: all at once.
  void ListPage(const Resource& resource, const Selection& selection, std::uint32_t limit,
                const std::string& continue_token, ObjectCallback callback);
  // All pages as one List. kConflict (expired) if the pages outlived the server's memory.
  void List(const Resource& resource, const Selection& selection, ObjectCallback callback);

  void Create(const Resource& resource, const Json& object, ObjectCallback callback);
  // Replaces the object; metadata.resourceVersion, if there is one, must still be the newest.
  void Update(const Resource& resource, const Json& object, ObjectCallback callback);
  // Server-side apply: `object` holds the fields that this manager wants, all of them.
  void Apply(const Resource& resource, const Json& object, const ApplyOptions& options,
             ObjectCallback callback);
  // kNotFound if it is gone already.
  void Delete(const Resource& resource, const ObjectKey& key, const DeleteOptions& options,
              DoneCallback callback);

  // Whose token is this? An unauthenticated one is a result, no error. `audiences` empty: the API
  // server's own.
  void ReviewToken(const std::string& token, const std::vector<std::string>& audiences,
                   ReviewCallback callback);
};

inline constexpr std::uint32_t kPageLimit = 500;
inline constexpr std::size_t kMaxListedObjects = 1'000'000;

// The body of a DELETE.
Json ToJson(const DeleteOptions& options);
// Of a TokenReview object with status; kInvalidArgument if it has none.
Result<TokenReview> ParseTokenReview(const Json& object);

}  // namespace optcache::kube
