#include "kube/watch_decoder.h"

#include <fmt/format.h>

namespace optcache::kube {
namespace {

std::optional<WatchEventType> TypeFrom(std::string_view text) {
  if (text == "ADDED") return WatchEventType::kAdded;
  if (text == "MODIFIED") return WatchEventType::kModified;
  if (text == "DELETED") return WatchEventType::kDeleted;
  if (text == "BOOKMARK") return WatchEventType::kBookmark;
  return std::nullopt;
}

Result<DecodedEvent> ParseLine(std::string_view line) {
  Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const std::string type = TextAt(event, "/type");
  if (!Find(event, "/object").is_object()) {
    return Error(Code::kDataLoss, "a watch brought a line that is no event");
  }
  Json object = std::move(event["object"]);
  if (type == "ERROR") return MakeApiError(object, "watch");
  const auto known = TypeFrom(type);
  if (!known) {
    return Error(Code::kDataLoss, "a watch brought an event of an unknown type");
  }
  if (*known != WatchEventType::kBookmark && KeyOf(object).name.empty()) {
    return Error(Code::kDataLoss, "a watch brought an object without a name");
  }
  return WatchEvent{.type = *known, .object = std::move(object)};
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Status WatchDecoder::Feed(std::string_view bytes, std::vector<DecodedEvent>& events) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > limit_) {
      return {Code::kResourceExhausted,
              fmt::format("a watch brought a line of more than {}", FormatBytes(limit_))};
    }
    line_ += piece;
    if (end == std::string_view::npos) return OkStatus();
    bytes.remove_prefix(end + 1);
    if (!IsBlank(line_)) {
      ASSIGN_OR_RETURN(DecodedEvent event, ParseLine(line_));
      events.push_back(std::move(event));
    }
    line_.clear();
  }
  return OkStatus();
}

Status WatchDecoder::Finish() const {
  if (IsBlank(line_)) return OkStatus();
  return {Code::kDataLoss, "a watch ended within an event"};
}

}  // namespace optcache::kube
