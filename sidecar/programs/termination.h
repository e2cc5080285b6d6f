#pragma once

// What a container says at its end, in its termination message: how an index Job tells the operator
// what came out (docs/kubernetes.md, "A Dataset's life"), and a sidecar what it has measured.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/manifest_changes.h"
#include "headspace/report.h"

namespace optcache::sidecar {

struct Indexed {
  std::string digest;  // 64 hexadecimal digits
  std::uint64_t samples = 0;
  ByteCount bytes = 0;
  ByteCount largest = 0;  // sample
  std::optional<dataset::ManifestChanges> changes = {};
};
std::string TerminationMessage(const Indexed& indexed);

// Of a sidecar that has measured headspace: the Event on the pod's owner.
std::string TerminationMessage(const headspace::Report& report);

// Of a sidecar that has served samples: SavedSentence of them. Empty if that is.
std::string SavedMessage(std::string_view sentence);

// Writes it where the kubelet reads it.
void WriteTermination(const std::string& file, const std::string& message);

// The part of the work that failed.
enum class IndexStep { kSource, kUpload };

// Why, as a condition's reason has it: "SourceUnreachable".
std::string_view ReasonOf(IndexStep step, Code code);
// Cut to what Kubernetes keeps of it.
std::string TerminationMessage(IndexStep step, const Status& why);

// Of a warm-up that has ended: {"at": NODE, "samples": …}, of a line of its progress.
std::string WarmedMessage(const std::string& at, std::string_view progress);
// Of one that has failed: {"message": …}.
std::string WarmFailedMessage(const Status& why);

}  // namespace optcache::sidecar
