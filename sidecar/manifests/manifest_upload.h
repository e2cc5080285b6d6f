#pragma once

// Gives a manifest that was made to the nodes (docs/kubernetes.md, "A node's manifest server").

#include <string>

#include "base/clock.h"
#include "base/shared_bytes.h"
#include "base/status.h"
#include "net/event_loop.h"
#include "net/http_client.h"
#include "sidecar/manifests/manifest_client.h"

namespace optcache::sidecar {

struct ManifestToUpload {
  std::string dataset;  // "namespace/name"
  std::string digest;   // 64 hexadecimal digits
  SharedBytes bytes;
  Duration timeout = std::chrono::minutes(10);  // for all attempts together
};

// Offers it to all places, and then sends it, until one has taken it; runs the loop meanwhile.
// kUnavailable: none did in time; another code: a node's refusal, which other attempts would not
// change, with its sentence.
Status UploadManifest(net::EventLoop& loop, net::HttpClient& http, const ManifestPlaces& places,
                      const ManifestToUpload& manifest);

}  // namespace optcache::sidecar
