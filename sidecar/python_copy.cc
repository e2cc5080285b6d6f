#include "sidecar/python_copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>

#include "base/files.h"
#include "base/result.h"

namespace optcache::sidecar {
namespace {

namespace fs = std::filesystem;

constexpr ByteCount kInitMax = 1_MiB;
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
  fs::remove_all(stage, error);  // of a start that was cut off
  fs::create_directories(stage, error);
  RETURN_IF_ERROR(FilesystemStatus(error, "make " + stage.string()));
  RETURN_IF_ERROR(CopyTree(package, stage / "_copy"));
  fs::copy_file(package / "_injected.py", stage / "__init__.py", error);
  RETURN_IF_ERROR(FilesystemStatus(error, "copy " + (package / "_injected.py").string()));
  fs::permissions(stage / "__init__.py", kForAll | fs::perms::owner_write, error);
  fs::permissions(stage, kFolderForAll, error);
  return FilesystemStatus(error, "open up " + stage.string());
}

}  // namespace

Status CopyPythonPackage(const std::string& package, const std::string& folder) {
  const fs::path target = fs::path(folder) / "optcache";
  const std::string init = package + "/__init__.py";
  ASSIGN_OR_RETURN(const std::string wanted, ReadFile(init, kInitMax));
  const auto there = ReadFile((target / "_copy" / "__init__.py").string(), kInitMax);
  if (there && *there == wanted) return OkStatus();
  const fs::path stage = fs::path(folder) / ".optcache-new";
  RETURN_IF_ERROR(Stage(package, stage));
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

}  // namespace optcache::sidecar
