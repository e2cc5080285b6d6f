#include "handoff/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/memory_room.h"

namespace optcache::handoff {
namespace {

Status NoMemory(ByteCount size, const MemoryRoom& available) {
  return {Code::kResourceExhausted, "there is no room for " + FormatBytes(size) +
                                        " of shared memory: " + FormatBytes(available.bytes) +
                                        " are left by " + available.limited_by + "; ask for less"};
}

Result<UniqueFd> CreateMemoryFile(const std::string& name) {
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Error(ErrnoStatus(errno, "create the memory file " + name));
  return fd;
}

}  // namespace

Result<UniqueFd> MakeMemoryFile(const std::string& name, ByteCount size) {
  // Asked first: beyond a container's limit the kernel does not refuse, it kills.
  const MemoryRoom available = AvailableMemory();
  if (size > available.bytes) return Error(NoMemory(size, available));
  ASSIGN_OR_RETURN(UniqueFd fd, CreateMemoryFile(name));
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return Error(ErrnoStatus(errno, "size the memory file " + name));
  }
  while (::fallocate(fd.get(), 0, 0, static_cast<off_t>(size)) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOSPC || errno == ENOMEM) return Error(NoMemory(size, available));
    return Error(ErrnoStatus(errno, "fill the memory file " + name));
  }
  return fd;
}

Result<UniqueFd> MakeSealedCopy(const std::string& name, ByteSpan bytes) {
  ASSIGN_OR_RETURN(UniqueFd fd, CreateMemoryFile(name));
  RETURN_IF_ERROR(WriteAll(fd.get(), AsText(bytes), "the memory file " + name));
  RETURN_IF_ERROR(Seal(fd));
  return fd;
}

Status Seal(const UniqueFd& file) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) == 0) return OkStatus();
  return ErrnoStatus(errno, "seal a memory file");
}

}  // namespace optcache::handoff
