#pragma once

// Serves and takes manifests by HTTP (docs/kubernetes.md, "A node's manifest server").

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cache-node/manifest_path.h"
#include "cache-node/manifest_store.h"
#include "cache-node/refusals.h"
#include "cache-node/token_check.h"
#include "cache-node/worker.h"
#include "coordination/state.h"
#include "net/http_server.h"

namespace optcache::node {

// What many clients may make this node hold in memory at once.
struct ManifestServerLimits {
  ByteCount upload_bytes = 512_MiB;  // of all manifests that are being received; one a namespace
  ByteCount given_bytes = 512_MiB;   // of all different manifests that are being sent
};

// Used on the loop's thread only.
class ManifestServer {
 public:
  struct Parts {
    ManifestStore& store;
    Worker& worker;
    TokenCheck& tokens;
    Refusals& refusals;
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
    ByteCount bytes = 0;
  };
  // Those under way, which also end when this does not live any more.
  using Uploads = std::list<Upload>;

  // Calls `then` with whose token it is, or answers.
  using Answer = std::function<void(net::HttpResponse)>;
  void Authenticate(const net::HttpRequest& request, const Answer& respond,
                    std::function<void(const Caller&)> then);
  net::HttpHeadRuling RuleOnUpload(const Caller& caller, const Path& path,
                                   const net::HttpRequest& head);
  void GiveByDigest(const net::HttpRequest& request, const Path& path,
                    const net::HttpResponder& respond);
  void GiveByDataset(const Caller& caller, const Path& path, const net::HttpResponder& respond);
  void Give(const std::string& digest, const net::HttpResponder& respond);
  void OnRead(const std::string& digest, Result<std::string> bytes);
  ByteCount GivenBytes();
  void Take(const Caller& caller, const Path& path, std::string bytes,
            const net::HttpResponder& respond);
  static Status MayPut(const Caller& caller, const Path& path);

  Parts parts_;
  ManifestServerLimits limits_;
  std::shared_ptr<Uploads> uploads_ = std::make_shared<Uploads>();  // with what holds them open
  std::map<std::string, std::weak_ptr<const std::string>> given_;   // what is being sent
  std::map<std::string, std::vector<net::HttpResponder>> reading_;  // who waits for what is read
};

}  // namespace optcache::node
