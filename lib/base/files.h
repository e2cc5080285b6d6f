#pragma once

// Whole-file reads and writes for small files (manifests, state, configuration); locks; how many
// may be open.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace optcache {

// kResourceExhausted if the file has more than `limit` bytes.
Result<std::string> ReadFile(const std::string& path, ByteCount limit);

// Its last bytes, `limit` at most.
Result<std::string> ReadFileEnd(const std::string& path, ByteCount limit);

// All of the bytes, where the descriptor stands; `name` is for errors.
Status WriteAll(int fd, std::string_view bytes, const std::string& name);

// Replaces `path` atomically: a temporary file beside it, fsync, rename, fsync of the folder.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// Locks the file, which it makes if need be, for as long as the descriptor is open: a process that
// dies, however it does, leaves nothing locked. kConflict: it is locked already.
Result<UniqueFd> LockFile(const std::string& path);

// The one line of a file that holds a bearer token, for example of a Kubernetes ServiceAccount.
// kInvalidArgument, without its content: it is empty, too long, or has characters no token has.
Result<std::string> ReadToken(const std::string& path);

// Lifts this process's limit on open files, sockets included, as far as it may by itself: the usual
// 1024 is less than the connections that a service takes.
void RaiseOpenFilesLimit();

}  // namespace optcache
