#include "sidecar/programs/python_copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/result.h"

namespace optcache::sidecar {
namespace {

namespace fs = std::filesystem;

constexpr ByteCount kVersionFileMax = 1_MiB;
constexpr auto kForAll = fs::perms::owner_read | fs::perms::group_read | fs::perms::others_read;
constexpr auto kFolderForAll =
    kForAll | fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec;

Status FilesystemStatus(const std::error_code& error, const std::string& what) {
  return error ? ErrnoStatus(error.value(), what) : OkStatus();
}

// The copy keeps no bytecode: that of the image may be of another Python.
Status CopyTree(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_directory(to, error);
  RETURN_IF_ERROR(FilesystemStatus(error, "make " + to.string()));
  for (const auto& entry : fs::directory_iterator(from, error)) {
    if (entry.path().filename() == "__pycache__") continue;
    const fs::path target = to / entry.path().filename();
    if (entry.is_directory()) {
      RETURN_IF_ERROR(CopyTree(entry.path(), target));
      continue;
    }
    fs::copy_file(entry.path(), target, error);
    RETURN_IF_ERROR(FilesystemStatus(error, "copy " + entry.path().string()));
    fs::permissions(target, kForAll | fs::perms::owner_write, error);
    RETURN_IF_ERROR(FilesystemStatus(error, "open up " + target.string()));
  }
  RETURN_IF_ERROR(FilesystemStatus(error, "read " + from.string()));
  fs::permissions(to, kFolderForAll, error);
  return FilesystemStatus(error, "open up " + to.string());
}

Status Stage(const fs::path& package, const fs::path& stage) {
  std::error_code error;
  RETURN_IF_ERROR(CopyTree(package, stage / "_copy"));
  fs::copy_file(package / "_injected.py", stage / "__init__.py", error);
  RETURN_IF_ERROR(FilesystemStatus(error, "copy " + (package / "_injected.py").string()));
  fs::permissions(stage / "__init__.py", kForAll | fs::perms::owner_write, error);
  fs::permissions(stage, kFolderForAll, error);
  return FilesystemStatus(error, "open up " + stage.string());
}

Status MakeEmpty(const fs::path& stage) {
  std::error_code error;
  fs::remove_all(stage, error);  // of a start that was cut off
  fs::create_directories(stage, error);
  return FilesystemStatus(error, "make " + stage.string());
}

Status PutInPlace(const fs::path& stage, const fs::path& target) {
  std::error_code error;
  fs::rename(stage, target, error);
  if (!error) return OkStatus();
  // One of another version is there: the two change places at once.
  if (::renameat2(AT_FDCWD, stage.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
    return ErrnoStatus(errno, "put the package at " + target.string());
  }
  fs::remove_all(stage, error);
  return OkStatus();
}

// Of two files, small ones; not if one is not there.
bool SameContent(const fs::path& one, const fs::path& other) {
  const auto first = ReadFile(one.string(), kVersionFileMax);
  const auto second = ReadFile(other.string(), kVersionFileMax);
  return first && second && *first == *second;
}

}  // namespace

Status CopyPythonPackage(const std::string& package, const std::string& folder) {
  const fs::path from(package);
  const fs::path stage = fs::path(folder) / ".optcache-new";
  const fs::path target = fs::path(folder) / "optcache";
  RETURN_IF_ERROR(ReadFile((from / "__init__.py").string(), kVersionFileMax));
  if (!SameContent(from / "__init__.py", target / "_copy" / "__init__.py")) {
    RETURN_IF_ERROR(MakeEmpty(stage));
    RETURN_IF_ERROR(Stage(from, stage));
    RETURN_IF_ERROR(PutInPlace(stage, target));
  }
  // Not by the package's own name: pip would take it for installed, and try to remove it.
  const fs::path info = fs::path(folder) / "optcache_injected.dist-info";
  if (SameContent(from / "_dist_info" / "METADATA", info / "METADATA")) return OkStatus();
  RETURN_IF_ERROR(MakeEmpty(stage));
  RETURN_IF_ERROR(CopyTree(from / "_dist_info", stage));
  return PutInPlace(stage, info);
}

}  // namespace optcache::sidecar
