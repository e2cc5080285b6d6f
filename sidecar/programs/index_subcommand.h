#pragma once

// `optcache-sidecar index`: lists a source, makes its manifest, gives it to the nodes, and says in
// its termination message what came out (docs/kubernetes.md, "The index Job").

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "storage/open_store.h"

namespace optcache::sidecar {

// Larger manifests are not compared: two of this size, and 16 bytes for each object of both, fit
// into the 1Gi of an index Job beside what making the list has left.
inline constexpr ByteCount kComparedBytesMax = 256_MiB;

struct IndexFlags {
  std::string dataset;  // "namespace/name"
  std::string source;
  storage::OpenOptions store;
  std::string request_rate;  // a second; empty: no limit
  std::string patience;      // with the source, "10m"; empty: that of `store`
  std::string byte_rate;     // likewise
  std::vector<std::string> include;
  std::string format = "Files";  // see storage::ParseFormat
  std::string order;             // "Path", "List", "ImageFolder"; empty: chosen by what is there
  std::string verify = "Checksum";
  std::string before;  // digest of the manifest to compare with; empty: none
  ByteCount compared_bytes_max = kComparedBytesMax;
  std::vector<std::string> manifests;  // URLs of nodes
  std::string token_file;
  std::string node_ca;
  std::uint64_t timeout_s = 4ULL * 3600;
  std::string termination_file = "/dev/termination-log";
};

// Blocks. The error is a sentence, and stands in the termination message, too.
Status RunIndex(const IndexFlags& flags);

}  // namespace optcache::sidecar
