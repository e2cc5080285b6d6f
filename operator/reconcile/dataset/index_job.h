#pragma once

// The Job that lists a Dataset's source and makes its manifest: how it is built, what it is named
// by, and what it says at its end.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/dataset.h"
#include "base/bytes.h"
#include "base/result.h"
#include "dataset/manifest_changes.h"
#include "kube/object.h"
#include "operator/reconcile/dataset/index_period.h"
#include "operator/reconcile/decision.h"

namespace optcache::reconcile {

inline constexpr const char* kDatasetLabel = "optcache.io/dataset";  // of a Job and its pods
inline constexpr const char* kComponentLabel = "app.kubernetes.io/component";
inline constexpr const char* kIndexComponent = "index";
// A Job that has ended stays this long to be looked at. One that has failed is then made again.
inline constexpr std::int64_t kJobKeptSeconds = 600;

// Of everything that the manifest depends on: source, format, include, order, verify and the
// annotation that asks for another time. Ten hexadecimal digits.
std::string IndexHash(const kube::Json& dataset, const api::DatasetSpec& spec);

// "imagenet-index-0a1b2c3d4e", or with a period "imagenet-index-0a1b2c3d4e-1795788000"; long names
// are cut so that it fits into a label.
std::string IndexJobName(std::string_view dataset, const IndexMark& mark);
// What such a name ends with.
IndexMark MarkOfJob(std::string_view name);

// `{"resources": {…}, "nodeSelector": {…}, "tolerations": […], "securityContext": {…}}`, of which
// each may be missing.
// kInvalidArgument: it is something else; what is inside them, the API server checks.
Result<kube::Json> ParseIndexPod(std::string_view text);

struct IndexRun {
  IndexMark mark;
  std::string before;  // digest of the manifest to compare with; empty: none
};

// kInvalidArgument: a source that this version cannot index.
Result<kube::Json> BuildIndexJob(const kube::Json& dataset, const api::DatasetSpec& spec,
                                 const IndexRun& run, const ReconcileSettings& settings);

// What a Job has said in its termination message.
struct IndexResult {
  // Of a manifest that was made.
  std::string digest;
  std::uint64_t samples = 0;
  ByteCount bytes = 0;
  ByteCount largest = 0;
  // Since IndexRun::before, if that is another one and the Job had it.
  std::optional<dataset::ManifestChanges> changes;
  // Or why none was: "SourceUnreachable".
  std::string reason;
  std::string message;

  bool ok() const { return reason.empty(); }
};

// kInvalidArgument: the text is neither.
Result<IndexResult> ParseIndexResult(std::string_view termination_message);

}  // namespace optcache::reconcile
