#pragma once

// Index files of Megatron-LM for tests.

#include <cstdint>
#include <string>
#include <vector>

namespace optcache {

struct MegatronSequence {
  std::int32_t tokens = 0;
  std::int64_t offset = 0;
};

template <typename Integer>
void AppendLittle(std::string& out, Integer value) {
  for (std::size_t i = 0; i < sizeof(value); ++i)
    out += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff);
}

// One document a sequence. `code` is that of the tokens' type: 8 is uint16.
inline std::string MegatronIdx(const std::vector<MegatronSequence>& sequences, int code = 8,
                               std::uint64_t version = 1) {
  std::string idx("MMIDIDX\0\0", 9);
  AppendLittle(idx, version);
  idx += static_cast<char>(code);
  AppendLittle<std::uint64_t>(idx, sequences.size());
  AppendLittle<std::uint64_t>(idx, sequences.size() + 1);
  for (const MegatronSequence& sequence : sequences)
    AppendLittle(idx, sequence.tokens);
  for (const MegatronSequence& sequence : sequences)
    AppendLittle(idx, sequence.offset);
  for (std::uint64_t document = 0; document <= sequences.size(); ++document)
    AppendLittle(idx, document);
  return idx;
}

}  // namespace optcache
