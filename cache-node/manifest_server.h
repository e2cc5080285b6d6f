#pragma once

// Serves and takes manifests by HTTP (docs/kubernetes.md, "A node's manifest server").

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache-node/manifest_store.h"
#include "cache-node/refusals.h"
#include "cache-node/token_check.h"
#include "cache-node/worker.h"
#include "coordination/state.h"
#include "net/http_server.h"

namespace optcache::node {

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
  explicit ManifestServer(Parts parts) : parts_(std::move(parts)) {}

  // Answers now or later.
  void Handle(const net::HttpRequest& request, const net::HttpResponder& respond);

 private:
  struct Path {
    enum class Kind { kByDigest, kByDataset, kPut } kind;
    std::string name_space;
    std::string dataset;  // "namespace/name"
    std::string digest;
  };
  static std::optional<Path> ParsePath(const net::HttpRequest& request);
  // Calls `then` with whose token it is, or answers.
  void Authenticate(const net::HttpRequest& request, const net::HttpResponder& respond,
                    std::function<void(const Caller&)> then);
  void GiveByDigest(const net::HttpRequest& request, const Path& path,
                    const net::HttpResponder& respond);
  void GiveByDataset(const Caller& caller, const Path& path, const net::HttpResponder& respond);
  void Give(const std::string& digest, const net::HttpResponder& respond);
  void OnRead(const std::string& digest, Result<std::string> bytes);
  void Take(const Caller& caller, const Path& path, std::string bytes,
            const net::HttpResponder& respond);
  static Status MayPut(const Caller& caller, const Path& path);

  Parts parts_;
  std::map<std::string, std::vector<net::HttpResponder>> reading_;  // who waits for what is read
};

}  // namespace optcache::node
