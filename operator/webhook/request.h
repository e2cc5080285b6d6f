#pragma once

// What a pod asks for, by its label and annotations. docs/kubernetes.md lists them.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "operator/webhook/json_access.h"

namespace optcache::webhook {

inline constexpr const char* kInjectLabel = "optcache.io/inject";
inline constexpr const char* kInjectedAnnotation = "optcache.io/injected";
// What the pod trains is not for use: headspace is measured in it.
inline constexpr const char* kResultsAnnotation = "optcache.io/results";
inline constexpr std::size_t kMaxDatasetsPerPod = 16;
inline constexpr ByteCount kMinArena = 16_MiB;
inline constexpr ByteCount kMaxArena = 4096_GiB;

enum class Selection { kNotSelected, kSwitchedOff, kSelected };

// By the label, and if there is none by the annotation optcache.io/dataset. kInvalidArgument: a
// label that says neither yes nor no.
Result<Selection> SelectionOf(const Json& pod);

struct DatasetName {
  std::string name_space;
  std::string name;
  std::string QualifiedName() const { return name_space + "/" + name; }
  friend bool operator==(const DatasetName&, const DatasetName&) = default;
};

// What a pod lends to a Dataset of another namespace, for whose owner it is then to use: objects of
// the pod's namespace, and who the pod is.
struct Loan {
  std::string secret;         // with the store's keys; empty: none
  std::string claim;          // empty: none
  bool pod_identity = false;  // a token of its ServiceAccount, and its ambient keys
};

struct InjectionRequest {
  std::vector<DatasetName> datasets;    // at least one, none twice
  std::map<std::string, Loan> loans;    // by the Dataset's qualified name: some of those
  std::string arena = "1Gi";            // a quantity
  std::string computed;                 // a quantity; empty: no computed samples are kept
  std::string headspace;                // what is measured; empty: nothing
  bool s3_endpoint = false;             // the sidecar serves by S3, too
  bool s3_placeholder_keys = false;     // clients of that get keys that open nothing
  bool fallback_keys = false;           // the training containers get the sources' keys, too
  std::string sampler;                  // of the first dataset, as it is read there; empty: unknown
  std::string cpu = "500m";             // a quantity
  std::string memory;                   // a quantity; empty: computed
  std::string storage;                  // a quantity; empty: computed
  std::vector<std::string> containers;  // empty: all
  bool optional = false;
  bool python = true;
  bool python_is_said = false;    // by the annotation
  std::string owner;              // empty: from the pod's owner
  std::uint32_t incarnation = 0;  // 0: from the pod's owner

  // Shared memory: the arena, and that for computed samples.
  ByteCount shared_bytes() const;
};

// optcache.io/optional alone, which also counts where the rest is wrong.
Result<bool> IsOptional(const Json& pod);

// `name_space` is the pod's. kInvalidArgument names the annotation, what is wrong and what is
// allowed.
Result<InjectionRequest> ParseRequest(const Json& pod, std::string_view name_space);

}  // namespace optcache::webhook
