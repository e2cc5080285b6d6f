#pragma once

// The safetensors container (https://huggingface.co/docs/safetensors): named tensors in one file.
// Only what plan files need: I64 is written, any dtype is found. Limits: docs/formats/opt4torch.md.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace optcache::plan {

inline constexpr std::size_t kMaxSafetensorsHeaderBytes = 1_MiB;
inline constexpr std::size_t kMaxTensors = 64;
inline constexpr std::size_t kMaxDimensions = 8;

struct Tensor {
  std::string dtype;  // "I64"
  std::vector<std::uint64_t> shape;
  ByteSpan data;  // a part of the file's bytes, row after row, little-endian
};
using Tensors = std::map<std::string, Tensor, std::less<>>;

// `file` must outlive the tensors. kInvalidArgument says what is wrong, and with which tensor.
// Whether a tensor's length fits its shape is for who knows its dtype.
Result<Tensors> ParseSafetensors(ByteSpan file);

// What stands before the data of such tensors of I64, in the order of their names, as the reference
// implementation writes it; `data` of the tensors is not looked at.
std::string SafetensorsHeader(const std::map<std::string, std::vector<std::uint64_t>>& shapes);

// "[10, 3]"
std::string FormatShape(const std::vector<std::uint64_t>& shape);

}  // namespace optcache::plan
