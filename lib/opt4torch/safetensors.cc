// Reads and writes the container: the length of a header, the header as JSON, the data.
//
// The idea: the file is not trusted. Limits stand before the work that they bound: the header's
// length before it is parsed, the number of tensors before they are looked at. The JSON parser
// accepts a name that stands twice, so a callback looks for it. CheckCovered sorts the tensors by
// their begin and demands that each begins where the one before ends: no byte belongs to two
// tensors or to none. A header is padded with spaces to a multiple of 8 bytes, so that the data is
// aligned.

#include "opt4torch/safetensors.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

namespace optcache::plan {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kI64Bytes = 8;
constexpr std::size_t kMaxShownName = 64;
constexpr const char* kMetadata = "__metadata__";

std::unexpected<Status> Refused(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

std::unexpected<Status> Refused(const std::string& tensor, std::string message) {
  return Refused("tensor '" + tensor.substr(0, kMaxShownName) + "': " + std::move(message));
}

Result<ByteSpan> HeaderOf(ByteSpan file) {
  if (file.size() < kLengthBytes) {
    return Refused(std::to_string(file.size()) +
                   " bytes are no safetensors file: it begins with the length of its header, 8 "
                   "bytes");
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    length = length << 8U | std::to_integer<std::uint64_t>(file[i]);
  if (length > kMaxSafetensorsHeaderBytes) {
    return Refused("a header of " + std::to_string(length) + " bytes, at most " +
                   std::to_string(kMaxSafetensorsHeaderBytes) +
                   " are read; is it a safetensors file?");
  }
  const ByteSpan rest = file.subspan(kLengthBytes);
  if (length > rest.size()) {
    return Refused("a header of " + std::to_string(length) + " bytes, but the file ends after " +
                   std::to_string(rest.size()) + " of them: it is cut short, copy it again");
  }
  return rest.first(static_cast<std::size_t>(length));
}

// A document whose outer names differ.
Result<json> ParseHeader(ByteSpan header) {
  const std::string_view text = AsText(header);
  if (!text.starts_with('{')) return Refused("its header does not begin with '{'");
  std::set<std::string> names;
  bool repeated = false;
  const auto note_name = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth != 1 || event != json::parse_event_t::key) return true;
    const auto& name = parsed.get_ref<const std::string&>();
    repeated |= !names.insert(name).second;
    return true;
  };
  json document = json::parse(text, note_name, false);
  if (!document.is_object()) return Refused("its header is no JSON object");
  if (repeated) return Refused("a tensor's name comes twice");
  return document;
}

// Nothing if it is no list of at most `most` unsigned numbers.
std::optional<std::vector<std::uint64_t>> UnsignedNumbers(const json& value, std::size_t most) {
  if (!value.is_array() || value.size() > most) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const json& number : value) {
    if (!number.is_number_unsigned()) return std::nullopt;
    numbers.push_back(number.get<std::uint64_t>());
  }
  return numbers;
}

// May it be shown on a terminal? Plans need no more than ASCII.
bool IsPlain(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

Result<Tensor> ParseTensor(const std::string& name, const json& entry, ByteSpan data) {
  const auto field = [&](const char* key) {
    return entry.is_object() && entry.contains(key) ? entry.at(key) : json();
  };
  const json dtype = field("dtype");
  auto shape = UnsignedNumbers(field("shape"), kMaxDimensions);
  const auto offsets = UnsignedNumbers(field("data_offsets"), 2);
  if (!dtype.is_string() || !IsPlain(dtype.get<std::string>()) || !shape || !offsets ||
      offsets->size() != 2) {
    return Refused(name, "it takes a dtype, a shape of at most 8 numbers, and two data_offsets");
  }
  const std::uint64_t begin = (*offsets)[0];
  const std::uint64_t end = (*offsets)[1];
  if (begin > end) return Refused(name, "its data_offsets end before they begin");
  if (end > data.size()) {
    return Refused(name, "its data end at byte " + std::to_string(end) + " of " +
                             std::to_string(data.size()) +
                             " that there are: the file is cut short, copy it again");
  }
  return Tensor{
      .dtype = dtype.get<std::string>(),
      .shape = *std::move(shape),
      .data = data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))};
}

// Each byte of the data belongs to one tensor.
Status CheckCovered(const Tensors& tensors, ByteSpan data) {
  std::vector<std::pair<std::ptrdiff_t, const Tensors::value_type*>> by_begin;
  for (const auto& entry : tensors)
    by_begin.emplace_back(entry.second.data.data() - data.data(), &entry);
  std::ranges::sort(by_begin, {}, [](const auto& item) {
    return std::pair(item.first, item.second->second.data.size());
  });
  std::size_t covered = 0;
  for (const auto& [begin, entry] : by_begin) {
    if (static_cast<std::size_t>(begin) != covered) {
      return Refused(entry->first, "its data begin at byte " + std::to_string(begin) +
                                       ", those before it end at " + std::to_string(covered))
          .error();
    }
    covered += entry->second.data.size();
  }
  if (covered == data.size()) return OkStatus();
  return Refused(std::to_string(data.size() - covered) + " bytes at its end belong to no tensor")
      .error();
}

}  // namespace

Result<Tensors> ParseSafetensors(ByteSpan file) {
  ASSIGN_OR_RETURN(const ByteSpan header, HeaderOf(file));
  ASSIGN_OR_RETURN(const json document, ParseHeader(header));
  const ByteSpan data = file.subspan(kLengthBytes + header.size());
  if (document.size() > kMaxTensors) {
    return Refused(std::to_string(document.size()) + " tensors, at most " +
                   std::to_string(kMaxTensors) + " are read; is it a plan?");
  }
  Tensors tensors;
  for (const auto& [name, entry] : document.items()) {
    if (name == kMetadata) continue;
    if (!IsPlain(name)) return Refused("a tensor's name is not printable ASCII; is it a plan?");
    ASSIGN_OR_RETURN(Tensor tensor, ParseTensor(name, entry, data));
    tensors.emplace(name, std::move(tensor));
  }
  RETURN_IF_ERROR(CheckCovered(tensors, data));
  return tensors;
}

std::string SafetensorsHeader(const std::map<std::string, std::vector<std::uint64_t>>& shapes) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  std::uint64_t begin = 0;
  for (const auto& [name, shape] : shapes) {
    std::uint64_t end = kI64Bytes;
    for (const std::uint64_t length : shape)
      end *= length;
    end += begin;
    document[name] = {{"dtype", "I64"}, {"shape", shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string header = document.dump();
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    bytes += static_cast<char>(header.size() >> (8 * i) & 0xffU);
  return bytes + header;
}

std::string FormatShape(const std::vector<std::uint64_t>& shape) {
  std::string text;
  for (const std::uint64_t length : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(length);
  return "[" + text + "]";
}

}  // namespace optcache::plan
