#pragma once

// Memory files (memfd_create) to be passed to other processes.

#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace optcache::handoff {

// A file of `size` zero bytes that are all there already. kResourceExhausted if the machine or the
// container has not so much memory.
Result<UniqueFd> MakeMemoryFile(const std::string& name, ByteCount size);

// A file with these bytes that nobody can change any more, to be mapped by clients.
Result<UniqueFd> MakeSealedCopy(const std::string& name, ByteSpan bytes);

// From now on nobody can change its content or its size; it is not mapped to be written.
Status Seal(const UniqueFd& file);

}  // namespace optcache::handoff
