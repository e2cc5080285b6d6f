#include "cache-node/control/state_dir.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "coordination/codec.h"
#include "coordination/desired_state.h"
#include "dataset/digest.h"

namespace optcache::node {
namespace {

namespace fs = std::filesystem;

Status MakeFolder(const std::string& folder, fs::perms perms) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) fs::permissions(folder, perms, error);
  return error ? ErrnoStatus(error.value(), "make " + folder) : OkStatus();
}

bool Names(const coordination::DatasetState& dataset, const std::string& digest) {
  return dataset.base_digest == digest ||
         std::ranges::any_of(dataset.streams, [&](const coordination::StreamState& stream) {
           return std::ranges::find(stream.traces, digest, &coordination::PassTrace::digest) !=
                  stream.traces.end();
         });
}

}  // namespace

Result<StateDir> StateDir::Open(std::string folder) {
  StateDir dir(std::move(folder));
  std::error_code error;
  fs::create_directories(dir.folder_, error);
  if (error) return Error(ErrnoStatus(error.value(), "make " + dir.folder_));
  RETURN_IF_ERROR(MakeFolder(dir.manifests(), fs::perms::owner_all));
  RETURN_IF_ERROR(MakeFolder(dir.identity(), fs::perms::owner_all));
  RETURN_IF_ERROR(MakeFolder(dir.Bases(), fs::perms::owner_all));
  return dir;
}

std::optional<coordination::DesiredState> StateDir::LoadState() const {
  const auto text = ReadFile(StateFile(), coordination::kMaxStateBytes);
  if (!text && text.error().code() == Code::kNotFound) return std::nullopt;
  auto state = text ? coordination::ParseDesiredState(*text) : Error(text.error());
  if (state) return *std::move(state);
  Log(LogLevel::kWarning, "the kept state cannot be used, waiting for the coordinator",
      {{"file", StateFile()}, {"why", state.error().message()}});
  return std::nullopt;
}

Status StateDir::SaveState(const coordination::DesiredState& state) const {
  return WriteFileAtomically(StateFile(), coordination::ToJson(state));
}

std::optional<std::string> StateDir::LoadPart(const std::string& digest) const {
  if (!dataset::IsHexDigest(digest)) return std::nullopt;
  auto bytes = ReadFile(Bases() + "/" + digest, coordination::kMaxBaseBytes);
  if (!bytes || dataset::ToHex(dataset::Sha256Of(AsBytes(*bytes))) != digest) return std::nullopt;
  return *std::move(bytes);
}

Status StateDir::SavePart(const std::string& digest, const std::string& bytes,
                          const coordination::DesiredState& state) const {
  if (!dataset::IsHexDigest(digest))
    return {Code::kInvalidArgument, "'" + digest + "' is no digest"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(Bases(), ignored)) {
    const std::string name = entry.path().filename().string();
    const bool wanted =
        std::ranges::any_of(coordination::AllDatasets(state),
                            [&](const auto* dataset) { return Names(*dataset, name); });
    if (!wanted) fs::remove_all(entry.path(), ignored);
  }
  return WriteFileAtomically(Bases() + "/" + digest, bytes);
}

}  // namespace optcache::node
