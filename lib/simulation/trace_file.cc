#include "simulation/trace_file.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/whole_number.h"
#include "simulation/reads.h"

namespace optcache::simulation {
namespace {

constexpr std::size_t kRecordBytes = 24;
constexpr std::size_t kIdOffset = 4;
constexpr std::size_t kSizeOffset = 12;
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, "trace: " + std::move(message));
}

std::uint64_t LittleEndian(ByteSpan bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8U | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

// Numbers ids by when they first come.
class Numbering {
 public:
  SampleId NumberOf(std::uint64_t id) {
    return numbers_.try_emplace(id, static_cast<SampleId>(numbers_.size())).first->second;
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(numbers_.size()); }

 private:
  std::unordered_map<std::uint64_t, SampleId> numbers_;
};

std::string_view Trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  line = line.substr(0, line.find('#'));
  const std::size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

// For a message: no more than one line shows, and no control characters.
std::string Shown(std::string_view line) {
  std::string text(line.substr(0, 40));
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

std::string TooLong() {
  return "more than " + std::to_string(kMaxReads) + " reads; cut it";
}

}  // namespace

Result<Trace> ParseIdTrace(std::string_view text) {
  if (text.starts_with(kZstdMagic)) return Invalid("it is compressed; say `zstd -d` first");
  Trace trace;
  Numbering numbering;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const auto id = ParseWholeNumber<std::uint64_t>(line);
    if (!id) {
      return Invalid("line " + std::to_string(number) + ": '" + Shown(line) +
                     "' is no id; write one unsigned number a line");
    }
    if (trace.reads.size() == kMaxReads) return Invalid(TooLong());
    trace.reads.push_back(numbering.NumberOf(*id));
  }
  if (trace.reads.empty()) return Invalid("it names no read");
  trace.samples = numbering.size();
  return trace;
}

Result<Trace> ParseOracleGeneral(ByteSpan bytes) {
  if (AsText(bytes).starts_with(kZstdMagic))
    return Invalid("it is compressed; say `zstd -d` first");
  if (bytes.size() % kRecordBytes != 0) {
    return Invalid(std::to_string(bytes.size()) + " bytes are no whole number of records of " +
                   std::to_string(kRecordBytes) + "; is it oracleGeneral?");
  }
  if (bytes.empty()) return Invalid("it names no read");
  if (bytes.size() / kRecordBytes > kMaxReads) return Invalid(TooLong());
  Trace trace;
  Numbering numbering;
  trace.reads.reserve(bytes.size() / kRecordBytes);
  for (; !bytes.empty(); bytes = bytes.subspan(kRecordBytes)) {
    const auto size = static_cast<std::uint32_t>(LittleEndian(bytes.subspan(kSizeOffset, 4)));
    if (size == 0) {
      return Invalid("record " + std::to_string(trace.reads.size() + 1) +
                     ": an object of 0 bytes; is it oracleGeneral?");
    }
    const SampleId sample = numbering.NumberOf(LittleEndian(bytes.subspan(kIdOffset, 8)));
    if (sample == trace.sizes.size()) trace.sizes.push_back(size);
    trace.reads.push_back(sample);
  }
  trace.samples = numbering.size();
  return trace;
}

}  // namespace optcache::simulation
