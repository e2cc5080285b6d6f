#pragma once

// Tells the training processes where they can read samples themselves while this sidecar does not
// answer: docs/formats/sources.md.

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "sidecar/manifests/served_dataset.h"

namespace optcache::sidecar {

inline constexpr ByteCount kSourcesBytesMax = 1_MiB;

struct ListedSource {
  DatasetSource source;
  std::string manifest_digest;  // of source.manifest_file, in hex; empty: not known
};

// The text of the file. Has addresses only, no keys. `ca_file`: certificates to trust for https
// instead of the system's; empty: the system's.
std::string SourcesJson(const std::vector<ListedSource>& sources, const std::string& ca_file);

// Puts it beside the socket, as `socket` + ".sources", readable for everybody. kResourceExhausted:
// it would be longer than kSourcesBytesMax; then, and after any other error, no file is there.
Status WriteSources(const std::string& socket, const std::vector<ListedSource>& sources,
                    const std::string& ca_file);

// For a sidecar that ends in order: what the next one serves may be something else.
void RemoveSources(const std::string& socket);

}  // namespace optcache::sidecar
