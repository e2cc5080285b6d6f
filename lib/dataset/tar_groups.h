#pragma once

// Which members of a tar archive make one sample, as the `webdataset` package groups them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/members.h"
#include "dataset/tar_reader.h"

namespace optcache::dataset {

// A path at the first dot of its file name: "a/b.seg.png" is {"a/b", "seg.png"}.
struct TarName {
  std::string_view key;
  std::string_view suffix;
  friend bool operator==(const TarName&, const TarName&) = default;
};

// Nothing where `webdataset` finds no key: such members are left out. Its regular expression is
// ^((?:.*/|)[^.]+)[.]([^/]*)$, so a name that begins with a dot has its folder as key.
std::optional<TarName> SplitTarName(std::string_view name);

// True for members that tell of the archive itself ("__meta__/x.json"), which are left out too.
bool IsTarMeta(std::string_view name);

// Members of one key that follow one another.
struct TarGroup {
  std::string key;
  std::vector<Member> members;  // names are suffixes, ASCII letters in lower case
};

// Groups the members of one archive in its order. Not thread-safe: a value.
class TarGrouper {
 public:
  // kInvalidArgument names the member: its suffix comes twice in its group, or is one that
  // `webdataset` keeps for itself, or the group has more than kMembersMax members.
  Status Add(const TarFile& file);

  // The groups so far; nothing may follow.
  std::vector<TarGroup> Finish() && { return std::move(groups_); }

 private:
  std::vector<TarGroup> groups_;
};

}  // namespace optcache::dataset
