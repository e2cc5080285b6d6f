// The header of a .npy file is a Python literal, {'descr': '<f4', 'fortran_order': False,
// 'shape': (3, 2), }, padded with blanks. Only what numpy itself writes is read: strings, whole
// numbers, True and False, tuples and lists, in a dict of these three keys. 'descr' is a string, or
// for records a list of fields: (name, descr) or (name, descr, shape).
// Invariants: numbers stay below 2^62, lists are not deeper than kNpyDepthMax, and no row is taken
// that does not lie within the file.

#include "dataset/npy.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/utf8.h"
#include "dataset/internal/little_endian.h"

namespace optcache::dataset {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr unsigned kNpyDepthMax = 16;
constexpr size_t kNpyTextShown = 100;  // bytes of the header that a message quotes

// A string, a number, a truth value, or a list or tuple of them.
struct NpyLiteral {
  enum class Kind { kString, kNumber, kTruth, kList };
  Kind kind = Kind::kList;
  std::string_view text;  // as it stands in the header; of a string, what is in the quotes
  std::uint64_t number = 0;
  bool truth = false;
  std::vector<NpyLiteral> items;
};

Status NpyError(std::string_view what) {
  return {Code::kInvalidArgument, std::string(what)};
}

Status UnknownNpyType(std::string_view type) {
  return NpyError(
      fmt::format("its type {} is not known", CutText(std::string(type), kNpyTextShown)));
}

// What a message quotes of a shape.
std::string NpyShapeText(const NpyLiteral& shape) {
  return CutText(std::string(shape.text), kNpyTextShown);
}

Status NpyShapeTooLarge(const NpyLiteral& shape) {
  return NpyError(fmt::format("its shape {} is larger than any file", NpyShapeText(shape)));
}

class NpyLiteralReader {
 public:
  explicit NpyLiteralReader(std::string_view text) : text_(text), all_(text) {}

  // What follows, up to its end.
  Result<NpyLiteral> Take(unsigned depth = 0) {
    SkipBlanks();
    if (depth > kNpyDepthMax) return Error(Wrong("lists within lists"));
    const std::string_view from = text_;
    NpyLiteral literal;
    if (text_.starts_with('\'') || text_.starts_with('"')) {
      RETURN_IF_ERROR(TakeString(literal));
      return literal;
    }
    if (text_.starts_with('(') || text_.starts_with('[')) {
      RETURN_IF_ERROR(TakeList(literal, depth));
    } else if (TakeWord("True") || TakeWord("False")) {
      literal.kind = NpyLiteral::Kind::kTruth;
      literal.truth = from.starts_with("True");
    } else {
      RETURN_IF_ERROR(TakeNumber(literal));
    }
    literal.text = from.substr(0, from.size() - text_.size());
    return literal;
  }

  // True, and past it, if this comes next.
  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  bool AtEnd() {
    SkipBlanks();
    return text_.empty();
  }

  Status Wrong(std::string_view what) const {
    return NpyError(fmt::format("its header is none that numpy writes: {} at byte {} of it", what,
                                all_.size() - text_.size()));
  }

 private:
  void SkipBlanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \n\t"), text_.size()));
  }

  Status TakeString(NpyLiteral& literal) {
    const char quote = text_.front();
    size_t end = 1;
    while (end < text_.size() && text_[end] != quote)
      end += text_[end] == '\\' ? 2U : 1U;
    if (end >= text_.size()) return Wrong("a string without end");
    literal.kind = NpyLiteral::Kind::kString;
    literal.text = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return OkStatus();
  }

  Status TakeList(NpyLiteral& literal, unsigned depth) {
    const std::string_view close = text_.starts_with('(') ? ")" : "]";
    text_.remove_prefix(1);
    while (!TakeWord(close)) {
      if (AtEnd()) return Wrong("a list without end");
      ASSIGN_OR_RETURN(NpyLiteral item, Take(depth + 1));
      literal.items.push_back(std::move(item));
      if (TakeWord(",")) continue;
      if (TakeWord(close)) break;
      return Wrong("no comma");
    }
    return OkStatus();
  }

  Status TakeNumber(NpyLiteral& literal) {
    const auto [stop, error] =
        std::from_chars(text_.data(), text_.data() + text_.size(), literal.number);
    if (error != std::errc() || literal.number > kRangedObjectBytesMax)
      return Wrong("no string, number, True, False or list");
    literal.kind = NpyLiteral::Kind::kNumber;
    text_.remove_prefix(static_cast<size_t>(stop - text_.data()));
    return OkStatus();
  }

  std::string_view text_;
  const std::string_view all_;
};

struct NpyHeader {
  std::optional<NpyLiteral> descr, fortran_order, shape;
};

Result<NpyHeader> ReadNpyHeader(std::string_view text) {
  NpyLiteralReader reader(text);
  NpyHeader header;
  if (!reader.TakeWord("{")) return Error(reader.Wrong("no dict"));
  while (!reader.TakeWord("}")) {
    ASSIGN_OR_RETURN(const NpyLiteral key, reader.Take());
    if (!reader.TakeWord(":")) return Error(reader.Wrong("no colon"));
    ASSIGN_OR_RETURN(NpyLiteral value, reader.Take());
    if (key.text == "descr") {
      header.descr = std::move(value);
    } else if (key.text == "fortran_order") {
      header.fortran_order = std::move(value);
    } else if (key.text == "shape") {
      header.shape = std::move(value);
    } else {
      return Error(reader.Wrong("an unknown key"));
    }
    if (reader.TakeWord(",")) continue;
    if (reader.TakeWord("}")) break;
    return Error(reader.Wrong("no comma"));
  }
  if (!reader.AtEnd()) return Error(reader.Wrong("something behind the dict"));
  if (!header.descr || !header.fortran_order || !header.shape)
    return Error(reader.Wrong("not all of descr, fortran_order and shape"));
  return header;
}

// The product; nothing beyond 2^62.
std::optional<ByteCount> NpyProduct(ByteCount a, ByteCount b) {
  ByteCount product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kRangedObjectBytesMax)
    return std::nullopt;
  return product;
}

// How many elements an array of this shape has: the product of `items` from `first` on.
Result<std::uint64_t> NpyElements(const NpyLiteral& shape, size_t first) {
  std::uint64_t elements = 1;
  if (shape.kind != NpyLiteral::Kind::kList) return Error(NpyError("its shape is no tuple"));
  for (size_t i = first; i < shape.items.size(); ++i) {
    const NpyLiteral& axis = shape.items[i];
    if (axis.kind != NpyLiteral::Kind::kNumber)
      return Error(
          NpyError(fmt::format("its shape {} has an axis without a number", NpyShapeText(shape))));
    const auto product = NpyProduct(elements, axis.number);
    if (!product) return Error(NpyShapeTooLarge(shape));
    elements = *product;
  }
  return elements;
}

// Of one value of a plain type, such as "<f4", "|S10" or "<M8[ns]".
Result<ByteCount> NpyPlainBytes(std::string_view type) {
  const auto unknown = [&] { return Error(UnknownNpyType(type)); };
  std::string_view rest = type;
  if (!rest.empty() && std::string_view("<>|=").contains(rest.front())) rest.remove_prefix(1);
  if (rest.empty()) return unknown();
  const char kind = rest.front();
  rest.remove_prefix(1);
  if (kind == 'O') {
    return Error(
        NpyError("its elements are Python objects, which lie pickled behind one another: "
                 "save an array of numbers, strings or records"));
  }
  ByteCount bytes = 0;
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), bytes);
  if (error != std::errc() || bytes > kRangedObjectBytesMax) return unknown();
  rest.remove_prefix(static_cast<size_t>(stop - rest.data()));
  const bool is_time = kind == 'M' || kind == 'm';
  if (!rest.empty() && !(is_time && rest.starts_with('[') && rest.ends_with(']'))) return unknown();
  if (!is_time && !std::string_view("biufcSaVU").contains(kind)) return unknown();
  const auto whole = NpyProduct(bytes, kind == 'U' ? 4 : 1);  // characters of UCS-4
  return whole ? Result<ByteCount>(*whole) : unknown();
}

// Of one element. Depth is bounded by that of the literal.
Result<ByteCount> NpyElementBytes(const NpyLiteral& descr) {
  if (descr.kind == NpyLiteral::Kind::kString) return NpyPlainBytes(descr.text);
  ByteCount total = 0;
  const auto unknown = [&] { return Error(UnknownNpyType(descr.text)); };
  if (descr.kind != NpyLiteral::Kind::kList || descr.items.empty()) return unknown();
  for (const NpyLiteral& field : descr.items) {
    const bool is_field = field.kind == NpyLiteral::Kind::kList &&
                          (field.items.size() == 2 || field.items.size() == 3);
    if (!is_field) return unknown();
    ASSIGN_OR_RETURN(const ByteCount bytes, NpyElementBytes(field.items[1]));
    std::uint64_t count = 1;
    if (field.items.size() == 3) {
      const NpyLiteral& shape = field.items[2];
      if (shape.kind == NpyLiteral::Kind::kNumber) {
        count = shape.number;
      } else {
        ASSIGN_OR_RETURN(count, NpyElements(shape, 0));
      }
    }
    const auto all = NpyProduct(bytes, count);
    if (!all || *all > kRangedObjectBytesMax - total) return unknown();
    total += *all;
  }
  return total;
}

// "<f4 (3, 2)": what one row is.
std::string NpyRowType(const NpyLiteral& descr, const NpyLiteral& shape) {
  std::string text(descr.text);
  if (shape.items.size() == 1) return text;
  text += " (";
  for (size_t i = 1; i < shape.items.size(); ++i)
    text += fmt::format("{}{}", i == 1 ? "" : ", ", shape.items[i].number);
  return text + ")";
}

}  // namespace

Result<ByteCount> NpyHeaderBytes(std::string_view front) {
  if (front.size() < kNpyFrontBytes || !front.starts_with(kNpyMagic)) {
    return Error(
        NpyError("this is no .npy file, as numpy.save writes it: it does not begin with "
                 "\\x93NUMPY"));
  }
  const auto major = static_cast<unsigned char>(front[kNpyMagic.size()]);
  if (major < 1 || major > 3) {
    return Error(NpyError(
        fmt::format("it is of version {} of numpy's format, and 1 to 3 are known", major)));
  }
  const char* const length = front.data() + kNpyMagic.size() + 2;
  const ByteCount bytes = major == 1 ? ByteCount{10} + internal::Load<std::uint16_t>(length)
                                     : ByteCount{12} + internal::Load<std::uint32_t>(length);
  if (bytes <= kNpyHeaderBytesMax) return bytes;
  return Error(NpyError(
      fmt::format("its header has {} bytes, and at most {} are read", bytes, kNpyHeaderBytesMax)));
}

Result<RangeIndex> ParseNpy(std::string_view path, std::string_view header, ByteCount file_bytes) {
  ASSIGN_OR_RETURN(const ByteCount header_bytes, NpyHeaderBytes(header));
  if (header.size() != header_bytes || header_bytes > file_bytes)
    return Error(NpyError("its header is cut short: upload the file again"));
  const bool is_first_version = header[kNpyMagic.size()] == 1;
  ASSIGN_OR_RETURN(const NpyHeader found, ReadNpyHeader(header.substr(is_first_version ? 10 : 12)));
  const NpyLiteral& shape = *found.shape;
  ASSIGN_OR_RETURN(const ByteCount element_bytes, NpyElementBytes(*found.descr));
  ASSIGN_OR_RETURN(const std::uint64_t elements, NpyElements(shape, 0));
  ASSIGN_OR_RETURN(const std::uint64_t row_elements, NpyElements(shape, 1));
  if (found.fortran_order->kind != NpyLiteral::Kind::kTruth)
    return Error(NpyError("its fortran_order is neither True nor False"));
  if (shape.items.empty())
    return Error(NpyError("it holds a single value, and samples are rows: save an array"));
  if (found.fortran_order->truth && shape.items.size() > 1) {
    return Error(
        NpyError("its rows do not lie in one piece each, since it is in Fortran order: "
                 "save numpy.ascontiguousarray(array)"));
  }
  const std::uint64_t rows = shape.items.front().number;
  const auto row_bytes = NpyProduct(element_bytes, row_elements);
  const auto bytes = NpyProduct(element_bytes, elements);
  if (!row_bytes || !bytes) return Error(NpyShapeTooLarge(shape));
  if (*row_bytes == 0) return Error(NpyError("its rows have no bytes"));
  if (file_bytes - header_bytes != *bytes) {
    return Error(NpyError(fmt::format("it has {} bytes, and its array of shape {} needs {}: {}",
                                      file_bytes, NpyShapeText(shape), header_bytes + *bytes,
                                      file_bytes - header_bytes < *bytes
                                          ? "upload the file again"
                                          : "save each array to a file of its own")));
  }
  RangeIndex index{.objects = {}, .runs = {}};
  index.type = NpyRowType(*found.descr, shape);
  index.unit = "row";
  if (rows == 0) return index;
  index.objects.emplace_back(path);
  index.runs.push_back({.offset = header_bytes, .length = *row_bytes, .count = rows});
  return index;
}

}  // namespace optcache::dataset
