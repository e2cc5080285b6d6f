// Any text as one of AWS's own files, and as the answer of a service that gives keys: read or
// refused, without repeating what may be a key.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "storage/aws_profile.h"
#include "storage/s3_temporary_keys.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace storage = optcache::storage;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto kind : {storage::AwsFileKind::kConfig, storage::AwsFileKind::kCredentials}) {
    const auto file = storage::ParseAwsFile(text, kind);
    if (!file) {
      Check(file.error().code() == optcache::Code::kInvalidArgument);
      Check(file.error().message().size() <= 300);
      continue;
    }
    Check(kind == storage::AwsFileKind::kConfig || file->services.empty());
    for (const auto& [name, section] : file->profiles) {
      Check(!name.empty());
      for (const auto& [key, property] : section) {
        Check(!key.empty() && property.line >= 1 && property.line <= size);
        Check(!property.value.contains('\n'));
      }
    }
  }
  if (const auto keys = storage::ParseKeyAnswer(text)) {
    Check(!keys->credentials.anonymous());
  } else {
    Check(keys.error().message().size() <= 300);
  }
  return 0;
}
