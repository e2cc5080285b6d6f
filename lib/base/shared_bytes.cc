#include "base/shared_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/unique_fd.h"

namespace optcache {

Result<SharedBytes> SharedBytes::Map(const std::string& path, ByteCount limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return Error(ErrnoStatus(errno, "open " + path));
  return Map(fd.get(), path, limit);
}

Result<SharedBytes> SharedBytes::Map(int fd, const std::string& name, ByteCount limit) {
  struct stat file{};
  if (::fstat(fd, &file) != 0) return Error(ErrnoStatus(errno, "read " + name));
  const auto size = static_cast<std::size_t>(file.st_size);
  if (size > limit) {
    return Error(Code::kResourceExhausted,
                 fmt::format("{}: larger than the limit of {}", name, FormatBytes(limit)));
  }
  if (size == 0) return SharedBytes();
  void* const pages = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (pages == MAP_FAILED) return Error(ErrnoStatus(errno, "map " + name));
  const std::shared_ptr<const void> owner(pages,
                                          [size, pages](const void*) { ::munmap(pages, size); });
  return SharedBytes(std::string_view(static_cast<const char*>(pages), size), owner);
}

}  // namespace optcache
