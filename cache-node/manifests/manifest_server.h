#pragma once

// Serves and takes manifests by HTTP (docs/kubernetes.md, "A node's manifest server").

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "base/callback_guard.h"
#include "cache-node/manifests/manifest_file.h"
#include "cache-node/manifests/manifest_path.h"
#include "cache-node/manifests/manifest_store.h"
#include "cache-node/trust/refusal_counters.h"
#include "cache-node/trust/token_check.h"
#include "coordination/state.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "net/worker_thread.h"

namespace optcache::node {

// What many clients may have under way at once. Each has a piece of 256 KiB in memory, or two.
struct ManifestServerLimits {
  std::size_t taken = 8;   // manifests that are being received; one a namespace
  std::size_t given = 16;  // that are being sent
};

// Used on the loop's thread only.
class ManifestServer {
 public:
  struct Parts {
    net::EventLoop& loop;
    ManifestStore& store;
    net::WorkerThread& worker;
    TokenCheck& tokens;
    RefusalCounters& refusal_counters;
    // The state in force; null while there is none.
    std::function<const coordination::DesiredState*()> state;
    // This node shall get that manifest: a pod here needs it.
    std::function<void(const std::string& digest)> fetch;
    // A pod of this machine reads that dataset.
    std::function<void(const std::string& dataset)> on_used;
    std::function<void(const std::string& digest)> on_stored;
  };
  // The parts outlive this.
  explicit ManifestServer(Parts parts, ManifestServerLimits limits = {})
      : parts_(std::move(parts)), limits_(limits) {}

  // As net::HttpHeadCheck: nobody's body is read before it is known who sends it, and that there is
  // room for it.
  void CheckHead(const net::HttpRequest& head, std::function<void(net::HttpHeadRuling)> decide);
  // Answers now or later.
  void Handle(net::HttpRequest request, const net::HttpResponder& respond);

 private:
  using Path = ManifestPath;
  struct Upload {
    std::string name_space;
    std::string who;
    std::string digest;
    std::shared_ptr<ManifestWriter> writer;
    bool checking = false;  // it has come
  };
  using Uploads = std::list<Upload>;

  // Calls `then` with whose token it is, or answers.
  using Answer = std::function<void(net::HttpResponse)>;
  void Authenticate(const net::HttpRequest& request, const Answer& respond,
                    std::function<void(const Caller&)> then);
  std::optional<net::HttpResponse> Ruling(const Caller& caller, const Path& path,
                                          std::optional<ByteCount> bytes);
  net::HttpResponse Refuse(const Caller& caller, const Status& why);
  net::HttpHeadRuling BeginUpload(const Caller& caller, const Path& path,
                                  std::optional<ByteCount> bytes);
  void EndUpload(Uploads::iterator upload);
  void GiveByDigest(const net::HttpRequest& request, const Path& path,
                    const net::HttpResponder& respond);
  void GiveByDataset(const Caller& caller, const Path& path, const net::HttpResponder& respond);
  void Give(const std::string& digest, const net::HttpResponder& respond);
  void OnDamage(const std::string& digest, const Status& why);
  void Take(const net::HttpRequest& request, const Path& path, const net::HttpResponder& respond);
  static Status MayPut(const Caller& caller, const Path& path);

  Parts parts_;
  ManifestServerLimits limits_;
  Uploads uploads_;
  // One owner for each that is being sent, and this.
  std::shared_ptr<char> given_ = std::make_shared<char>();
  CallbackGuard guard_;  // last
};

}  // namespace optcache::node
