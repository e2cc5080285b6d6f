// CSV of RFC 4180, in which no field holds a line break: so each line is split alone, and a message
// can name it. Invariants: each object stands in `objects` once, and `names` is empty or has a name
// for each run.

#include "dataset/ranges_csv.h"

#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"
#include "base/whole_number.h"
#include "dataset/manifest.h"

namespace optcache::dataset {
namespace {

constexpr size_t kCsvFieldsMax = 4;

class RangesCsvReader {
 public:
  explicit RangesCsvReader(std::string_view text) : text_(text) {}

  Result<RangeIndex> Read() {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    while (!text_.empty()) {
      ++line_;
      RETURN_IF_ERROR(TakeLine(NextLine()));
    }
    if (index_.runs.empty())
      return Error(Code::kInvalidArgument, "there is no range in it: write OBJECT,OFFSET,LENGTH");
    return std::move(index_);
  }

 private:
  std::string_view NextLine() {
    const size_t at = text_.find('\n');
    std::string_view line = text_.substr(0, at);
    text_.remove_prefix(at == std::string_view::npos ? text_.size() : at + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  Status TakeLine(std::string_view line) {
    if (line.empty()) return OkStatus();
    RETURN_IF_ERROR(Split(line));
    if (IsHead()) return OkStatus();
    RETURN_IF_ERROR(CheckLengths());
    if (count_ < 3) return Wrong("not OBJECT,OFFSET,LENGTH or OBJECT,OFFSET,LENGTH,NAME");
    const auto offset = ParseWholeNumber(fields_[1], kRangedObjectBytesMax);
    const auto length = ParseWholeNumber(fields_[2], kRangedObjectBytesMax);
    if (!offset || !length) {
      return Wrong(fmt::format("\"{}\" is no {} in bytes: write a whole number from 0 to 2^62",
                               fields_[offset ? 2 : 1], offset ? "length" : "offset"));
    }
    RETURN_IF_ERROR(TakeName());
    ASSIGN_OR_RETURN(const std::uint32_t object, ObjectNumber());
    index_.runs.push_back({.object = object, .line = line_, .offset = *offset, .length = *length});
    return OkStatus();
  }

  // Spreadsheets and data frames write the columns' names first.
  bool IsHead() const {
    return line_ == 1 && count_ >= 3 && fields_[0] == "object" && fields_[1] == "offset" &&
           fields_[2] == "length" && (count_ == 3 || fields_[3] == "name");
  }

  // What messages quote is bounded by it, too.
  Status CheckLengths() const {
    for (size_t i = 0; i < count_; ++i) {
      if (fields_[i].size() <= kPathBytesMax) continue;
      return Wrong(fmt::format("field {} has {} bytes; the limit is {}", i + 1, fields_[i].size(),
                               kPathBytesMax));
    }
    return OkStatus();
  }

  Status Split(std::string_view line) {
    count_ = 0;
    for (bool more = true; more;) {
      if (count_ == kCsvFieldsMax)
        return Wrong("more than four fields: put a path or name that has commas in quotes");
      std::string& field = fields_[count_++];
      field.clear();
      RETURN_IF_ERROR(line.starts_with('"') ? TakeQuoted(line, field) : TakePlain(line, field));
      more = line.starts_with(',');
      if (more) line.remove_prefix(1);
    }
    return OkStatus();
  }

  Status TakePlain(std::string_view& line, std::string& field) {
    field = line.substr(0, line.find(','));
    line.remove_prefix(field.size());
    if (field.find('"') == std::string::npos) return OkStatus();
    return Wrong("a quote within a field: put all of the field in quotes, and write it twice");
  }

  Status TakeQuoted(std::string_view& line, std::string& field) {
    line.remove_prefix(1);
    while (true) {
      const size_t quote = line.find('"');
      if (quote == std::string_view::npos)
        return Wrong("a field in quotes does not end on its line");
      field += line.substr(0, quote);
      line.remove_prefix(quote + 1);
      if (!line.starts_with('"')) break;
      field += '"';
      line.remove_prefix(1);
    }
    if (line.empty() || line.starts_with(',')) return OkStatus();
    return Wrong("something follows the quote that ends a field: write a comma");
  }

  Status TakeName() {
    const bool named = count_ == kCsvFieldsMax && !fields_[3].empty();
    if (!index_.runs.empty() && named == index_.names.empty()) {
      return Wrong(fmt::format("it has {} name, and line {} has {}: name all samples, or none",
                               named ? "a" : "no", index_.runs.front().line,
                               named ? "none" : "one"));
    }
    if (!named) return OkStatus();
    if (Status name = CheckObjectPath(fields_[3]); !name.ok())
      return Wrong("the name: " + name.message());
    index_.names.push_back(fields_[3]);
    return OkStatus();
  }

  // Most lines name the object of the line before.
  Result<std::uint32_t> ObjectNumber() {
    if (!index_.runs.empty()) {
      const std::uint32_t last = index_.runs.back().object;
      if (index_.objects[last] == fields_[0]) return last;
    }
    const auto next = static_cast<std::uint32_t>(index_.objects.size());
    const auto [known, is_new] = numbers_.emplace(fields_[0], next);
    if (!is_new) return known->second;
    if (Status path = CheckObjectPath(fields_[0]); !path.ok()) return Error(Wrong(path.message()));
    index_.objects.push_back(fields_[0]);
    return next;
  }

  Status Wrong(std::string_view what) const {
    return {Code::kInvalidArgument, fmt::format("line {}: {}", line_, what)};
  }

  std::string_view text_;
  std::uint32_t line_ = 0;
  std::array<std::string, kCsvFieldsMax> fields_;           // of this line
  size_t count_ = 0;                                        // of them
  std::unordered_map<std::string, std::uint32_t> numbers_;  // of objects
  RangeIndex index_;
};

}  // namespace

Result<RangeIndex> ParseRangesCsv(std::string_view text) {
  return RangesCsvReader(text).Read();
}

}  // namespace optcache::dataset
