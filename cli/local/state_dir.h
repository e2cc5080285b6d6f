#pragma once

// The folder in which `optcache up` and `optcache headspace` keep manifests, logs and where its
// coordinator is.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace optcache::cli {

// $XDG_STATE_HOME/optcache, else ~/.local/state/optcache.
std::string DefaultStateDir();

// One of them at a time works in a folder.
class StateDir {
 public:
  // Makes the folder if it is not there, for this user alone. kConflict: another program uses it,
  // which the message names, as this `program` will be. kPermissionDenied: it is another user's, or
  // its group or every user may write to it.
  static Result<StateDir> Open(const std::string& path, std::string_view program);

  const std::string& path() const { return path_; }
  // Makes the folder below it if it is not there, and gives its path.
  Result<std::string> Subfolder(const std::string& name) const;
  // The same, and no other user but root can reach what is in it, whatever its mode was.
  // kPermissionDenied: the mode cannot be set, or the filesystem does not keep it.
  Result<std::string> PrivateSubfolder(const std::string& name) const;

  // So that `optcache status` finds the coordinator; removed by the other.
  Status WriteCoordinator(const std::string& address) const;
  void RemoveCoordinator() const;

 private:
  StateDir(std::string path, UniqueFd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  UniqueFd lock_;
};

// The address of a running coordinator, "unix:/path" or a URL: `flag` if not empty, else
// $OPTCACHE_COORDINATOR, else what an `optcache up` has written into `state_dir`. kNotFound says
// all three; kPermissionDenied: that folder is another user's.
Result<std::string> FindCoordinator(const std::string& flag, const std::string& state_dir);

}  // namespace optcache::cli
