// Reads an S3 Inventory: manifest.json to columns and files, and CSV to keys, as it streams.
//
// The idea: InventoryRows is a state machine over characters that takes runs of plain ones at once.
// A row may be cut anywhere between two calls, so all that is known of the present row is in
// `fields_`. These keep their memory for the next row. A row that has ended is checked against the
// columns of manifest.json: its number of fields, its bucket, whether it is the latest version and
// no delete marker. Only then is its key added.
//
// Invariant: a row has at most kInventoryRowBytesMax bytes, so memory is bounded whatever the file
// has.

#include "storage/inventory.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "base/whole_number.h"
#include "storage/s3_listing.h"

namespace optcache::storage {
namespace {

constexpr std::string_view kArnOfBucket = "arn:aws:s3:::";
constexpr std::string_view kPlainChars = ",\"\r\n";  // what ends a run of others

std::unexpected<Status> BadInventory(std::string why) {
  return Error(Code::kInvalidArgument, std::move(why));
}

std::string Quoted(std::string_view text) {
  return fmt::format("\"{}\"", Visible(text.substr(0, 100)));
}

std::string TextOf(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// "Bucket, Key, VersionId, …"
Result<InventoryColumns> ParseColumns(std::string_view schema) {
  InventoryColumns columns;
  std::optional<size_t> key;
  std::optional<size_t> size;
  const std::pair<std::string_view, std::optional<size_t>*> wanted[] = {
      {"Bucket", &columns.bucket},
      {"Key", &key},
      {"Size", &size},
      {"ETag", &columns.etag},
      {"IsLatest", &columns.is_latest},
      {"IsDeleteMarker", &columns.is_delete_marker}};
  for (bool more = true; more; ++columns.count) {
    const size_t comma = schema.find(',');
    std::string_view name = schema.substr(0, comma);
    more = comma != std::string_view::npos;
    schema.remove_prefix(more ? comma + 1 : schema.size());
    while (name.starts_with(' '))
      name.remove_prefix(1);
    const auto* const column =
        std::ranges::find(wanted, name, [](const auto& w) { return w.first; });
    if (column == std::end(wanted)) continue;
    if (*column->second) return BadInventory(fmt::format("fileSchema names {} twice", name));
    *column->second = columns.count;
  }
  if (!key) return BadInventory("fileSchema names no column Key");
  if (!size) {
    return BadInventory(
        "the inventory has no sizes: add Size, and ETag, to the optional fields of its "
        "configuration, and wait for the next one");
  }
  columns.key = *key;
  columns.size = *size;
  return columns;
}

Result<InventoryFile> ParseFile(const nlohmann::json& json) {
  if (!json.is_object()) return BadInventory("an entry of files is no object");
  InventoryFile file{.key = TextOf(json, "key")};
  if (file.key.empty() || file.key.size() > kS3KeyBytesMax)
    return BadInventory("an entry of files has no key");
  const auto size = json.find("size");
  if (size == json.end() || !size->is_number_unsigned())
    return BadInventory(fmt::format("the file {} has no size", Quoted(file.key)));
  file.size = size->get<ByteCount>();
  return file;
}

}  // namespace

Result<Inventory> ParseInventory(std::string_view json) {
  const nlohmann::json manifest = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto files = manifest.is_object() ? manifest.find("files") : manifest.end();
  if (files == manifest.end() || !files->is_array()) {
    return BadInventory(
        "it is no manifest.json of an S3 Inventory: a JSON object with fileFormat, fileSchema and "
        "files");
  }
  if (const std::string format = TextOf(manifest, "fileFormat"); format != "CSV") {
    return BadInventory(fmt::format(
        "the inventory is in {}, and only CSV can be read: set CSV as the format of its "
        "configuration and wait for the next one, or give a text of keys, sizes and ETags",
        Quoted(format)));
  }
  Inventory inventory;
  inventory.bucket = TextOf(manifest, "sourceBucket");
  if (inventory.bucket.starts_with(kArnOfBucket)) inventory.bucket.erase(0, kArnOfBucket.size());
  ASSIGN_OR_RETURN(inventory.columns, ParseColumns(TextOf(manifest, "fileSchema")));
  inventory.files.reserve(files->size());
  for (const nlohmann::json& entry : *files) {
    ASSIGN_OR_RETURN(InventoryFile file, ParseFile(entry));
    inventory.files.push_back(std::move(file));
  }
  return inventory;
}

Status InventoryRows::Wrong(std::string_view why) const {
  return {Code::kInvalidArgument, fmt::format("row {}: {}", row_, why)};
}

Status InventoryRows::Add(std::string_view text) {
  while (!text.empty()) {
    const size_t run = state_ == State::kQuoted  ? text.find('"')
                       : state_ == State::kPlain ? text.find_first_of(kPlainChars)
                                                 : 0;
    row_bytes_ += std::min(run, text.size() - 1) + 1;
    if (row_bytes_ > kInventoryRowBytesMax)
      return Wrong(fmt::format("it is longer than {} bytes", kInventoryRowBytesMax));
    fields_[count_] += text.substr(0, run);
    if (run >= text.size()) break;
    const char next = text[run];
    text.remove_prefix(run + 1);
    if (state_ == State::kQuoted) {
      state_ = State::kQuoteInQuoted;
    } else {
      RETURN_IF_ERROR(TakeChar(next));
    }
  }
  return OkStatus();
}

void InventoryRows::BeginField() {
  state_ = State::kFieldStart;
  if (count_ == fields_.size()) fields_.emplace_back();
  fields_[count_].clear();
}

// Outside of quotes.
Status InventoryRows::TakeChar(char c) {
  if (state_ == State::kCarriageReturn && c != '\n')
    return Wrong("a carriage return within it: put the field in quotes");
  switch (c) {
    case '"':
      if (state_ == State::kPlain) return Wrong("a quote within a field that begins without one");
      if (state_ == State::kQuoteInQuoted) fields_[count_] += c;
      state_ = State::kQuoted;
      return OkStatus();
    case ',':
      ++count_;
      BeginField();
      return OkStatus();
    case '\r':
      state_ = State::kCarriageReturn;
      return OkStatus();
    case '\n':
      return TakeRow();
    default:
      if (state_ == State::kQuoteInQuoted)
        return Wrong("something follows the quote that ends a field");
      state_ = State::kPlain;
      fields_[count_] += c;
      return OkStatus();
  }
}

Status InventoryRows::Finish() {
  if (state_ == State::kQuoted) return Wrong("the file ends within a field in quotes");
  return TakeRow();
}

Status InventoryRows::TakeRow() {
  const bool empty = count_ == 0 && fields_[0].empty();
  if (!empty) RETURN_IF_ERROR(TakeFields());
  ++row_;
  row_bytes_ = 0;
  count_ = 0;
  BeginField();
  return OkStatus();
}

Status InventoryRows::TakeFields() {
  const InventoryColumns& columns = inventory_.columns;
  if (count_ + 1 != columns.count) {
    return Wrong(fmt::format("it has {} fields, and fileSchema of manifest.json names {}",
                             count_ + 1, columns.count));
  }
  if (columns.bucket && fields_[*columns.bucket] != inventory_.bucket) {
    return Wrong(fmt::format("it is of the bucket {}, and the inventory of {}",
                             Quoted(fields_[*columns.bucket]), Quoted(inventory_.bucket)));
  }
  ASSIGN_OR_RETURN(const bool latest, Flag(columns.is_latest, true));
  ASSIGN_OR_RETURN(const bool deleted, Flag(columns.is_delete_marker, false));
  if (!latest || deleted) return OkStatus();
  const Result<std::string> key = DecodeS3Key(fields_[columns.key]);
  if (!key) return Wrong(key.error().message());
  const auto size = ParseWholeNumber<ByteCount>(fields_[columns.size]);
  if (!size) return Wrong(Quoted(fields_[columns.size]) + " is no size in bytes");
  ObjectInfo info{.size = *size};
  if (columns.etag) {
    Result<std::string> etag = QuotedETag(fields_[*columns.etag]);
    if (!etag) return Wrong(etag.error().message());
    info.validator.etag = *std::move(etag);
  }
  const Status added = keys_.Add(*key, std::move(info));
  return added.ok() ? OkStatus() : Wrong(added.message());
}

Result<bool> InventoryRows::Flag(std::optional<size_t> column, bool otherwise) const {
  if (!column || fields_[*column].empty()) return otherwise;
  const std::string& text = fields_[*column];
  if (text == "true" || text == "false") return text == "true";
  return Error(Wrong(Quoted(text) + " is neither true nor false"));
}

}  // namespace optcache::storage
