#pragma once

// Keys as Kubernetes mounts a Secret: a folder with a file for each.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace optcache::storage::internal {

// One word of printable text of a bearable length, as it becomes a part of a header.
bool IsKeyText(std::string_view text);

// One line of text, as above; blanks and bytes above 0x7f as well, as servers other than Amazon's
// have them in secrets.
bool IsSecretText(std::string_view text);

// kPermissionDenied: "the keys in FOLDER: WHY".
std::unexpected<Status> BadKeys(const std::string& folder, std::string_view why);

// The one line of text in a file of the folder; none if there is no such file. A line's end after
// it does not count. kPermissionDenied, without its content: empty, too long, or not one line.
Result<std::optional<std::string>> ReadKeyFile(const std::string& folder, std::string_view name);

// Where the files of `folder` are right now: Kubernetes puts a changed Secret into a new folder and
// then turns the link ..data to it, so files read from there belong together.
std::string SnapshotOf(const std::string& folder);

// The path of ca.crt in the folder, or empty.
std::string CaFileIn(const std::string& folder);

}  // namespace optcache::storage::internal
