#pragma once

// What the node keeps across its restarts: the last desired state, parts of plans, manifests, its
// key and certificate.

#include <optional>
#include <string>

#include "base/result.h"
#include "coordination/state.h"

namespace optcache::node {

// A folder of files, each written as a whole or not at all. Not thread-safe: the event loop owns
// it.
class StateDir {
 public:
  // Makes the folders that are not there.
  static Result<StateDir> Open(std::string folder);

  // Nothing if there is none, or none that can be read; that is logged.
  std::optional<coordination::DesiredState> LoadState() const;
  Status SaveState(const coordination::DesiredState& state) const;  // thread-safe

  // The part of a plan of that digest, its base or a list of ids; nothing if it is not there or
  // damaged.
  std::optional<std::string> LoadPart(const std::string& digest) const;
  // Keeps this one and removes those that `state` does not name.
  Status SavePart(const std::string& digest, const std::string& bytes,
                  const coordination::DesiredState& state) const;

  std::string manifests() const { return folder_ + "/manifests"; }
  // Of files that nobody else may read.
  std::string identity() const { return folder_ + "/identity"; }

 private:
  explicit StateDir(std::string folder) : folder_(std::move(folder)) {}
  std::string StateFile() const { return folder_ + "/state.json"; }
  std::string Bases() const { return folder_ + "/bases"; }

  std::string folder_;
};

}  // namespace optcache::node
