// Reads YAML within limits, and makes JSON of it.
//
// Guard walks the text before anything is built, so that a small text cannot become a large tree.
// Converter then fills the JSON in place, from the top down: a value never moves once it is there,
// so its address stands for it in `places_`. The path of an error is put together from the frames
// above it when there is one, since a long key above many values would be copied often.

#include "config/internal/yaml_document.h"

#include <algorithm>
#include <sstream>

#include <yaml-cpp/eventhandler.h>

#include "config/configuration.h"

namespace optcache::config::internal {
namespace {

constexpr int kMaxDepth = 32;

// "demo.yaml:9: " and what follows.
Status ErrorAt(std::string_view file, const YAML::Mark& mark, std::string_view what) {
  const std::string line = mark.is_null() ? "" : ":" + std::to_string(mark.line + 1);
  return {Code::kInvalidArgument, std::string(file) + line + ": " + std::string(what)};
}

class Guard final : public YAML::EventHandler {
 public:
  explicit Guard(std::string_view file) : file_(file) {}
  const Status& status() const { return status_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > kMaxDocuments) {
      Fail(mark, "more than " + std::to_string(kMaxDocuments) + " documents");
    }
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Check(mark, anchor); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { Check(mark, 1); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string&) override {
    Check(mark, anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Enter(mark, anchor);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Enter(mark, anchor);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void Enter(const YAML::Mark& mark, YAML::anchor_t anchor) {
    Check(mark, anchor);
    if (++depth_ > kMaxDepth) Fail(mark, "nested more than " + std::to_string(kMaxDepth) + " deep");
  }
  void Check(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) Fail(mark, "anchors and aliases (& and *) are not allowed, write it out");
  }
  void Fail(const YAML::Mark& mark, const std::string& what) {
    if (status_.ok()) status_ = ErrorAt(file_, mark, what);
  }

  std::string_view file_;
  Status status_;
  std::size_t documents_ = 0;
  int depth_ = 0;
};

Status CheckLimits(std::istringstream& stream, std::string_view file) {
  YAML::Parser parser(stream);
  Guard guard(file);
  while (guard.status().ok() && parser.HandleNextDocument(guard)) {
  }
  return guard.status();
}

// From a value up to the document.
struct Frame {
  const Frame* above;
  std::string_view key;   // of a mapping
  std::size_t index = 0;  // of a list, where there is no key
};

std::string PathOf(const Frame* frame) {
  if (frame == nullptr || frame->above == nullptr)
    return frame == nullptr ? "" : std::string(frame->key);
  const std::string above = PathOf(frame->above);
  return frame->key.empty() ? above + "[" + std::to_string(frame->index) + "]"
                            : above + "." + std::string(frame->key);
}

int LineOf(const YAML::Node& node) {
  return node.Mark().is_null() ? 0 : node.Mark().line + 1;
}

}  // namespace

class YamlDocument::Converter {
 public:
  explicit Converter(YamlDocument& document) : document_(document) {}

  Status Fill(const YAML::Node& node, nlohmann::json& out, Place place, const Frame* frame) {
    place.line = LineOf(node);
    place.rank = document_.places_.size();
    place.quoted = node.Tag() == "!";
    if (!place.quoted && node.Tag() != "?") place.tag = node.Tag();
    document_.places_.emplace(&out, std::move(place));
    if (node.IsMap()) return FillMap(node, out, frame);
    if (node.IsSequence()) return FillList(node, out, frame);
    if (node.IsScalar()) out = node.Scalar();
    return OkStatus();
  }

 private:
  Status FillMap(const YAML::Node& node, nlohmann::json& out, const Frame* frame) {
    out = nlohmann::json::object();
    auto& object = out.get_ref<nlohmann::json::object_t&>();
    for (const auto& item : node) {
      const YAML::Node& key = item.first;
      if (!key.IsScalar()) return Fault(key, frame, "a key is not a word");
      if (object.size() >= kMaxListItems) return Fault(key, frame, "too many keys");
      const Frame below{.above = frame, .key = key.Scalar()};
      const auto [entry, is_new] = object.emplace(key.Scalar(), nullptr);
      if (!is_new) {
        return ErrorAt(document_.file_, key.Mark(), PathOf(&below) + " is written twice");
      }
      RETURN_IF_ERROR(Fill(item.second, entry->second, {.key_line = LineOf(key)}, &below));
    }
    return OkStatus();
  }

  Status FillList(const YAML::Node& node, nlohmann::json& out, const Frame* frame) {
    out = nlohmann::json::array_t(node.size());
    for (std::size_t i = 0; i < node.size(); ++i) {
      const Frame below{.above = frame, .key = {}, .index = i};
      RETURN_IF_ERROR(Fill(node[i], out[i], {.key_line = LineOf(node[i])}, &below));
    }
    return OkStatus();
  }

  Status Fault(const YAML::Node& at, const Frame* frame, const std::string& what) {
    const std::string path = PathOf(frame);
    return ErrorAt(document_.file_, at.Mark(), (path.empty() ? "document" : path) + ": " + what);
  }

  YamlDocument& document_;
};

Result<YamlDocument> YamlDocument::Read(const YAML::Node& node, std::string_view file) {
  YamlDocument document;
  document.file_ = file;
  RETURN_IF_ERROR(Converter(document).Fill(node, *document.root_, {}, nullptr));
  return document;
}

std::string YamlDocument::AtLine(int line) const {
  return line == 0 ? file_ : file_ + ":" + std::to_string(line);
}

std::string YamlDocument::At(const nlohmann::json& value) const {
  return AtLine(places_.at(&value).line);
}

std::string YamlDocument::AtKey(const nlohmann::json& value) const {
  return AtLine(places_.at(&value).key_line);
}

std::size_t YamlDocument::RankOfKey(const nlohmann::json& value) const {
  return places_.at(&value).rank;
}

YamlValue YamlDocument::ReadValue(api::Fields& fields, std::string_view name, Shape shape) const {
  const nlohmann::json* const value = fields.Find(name);
  if (value == nullptr) return {};
  if (shape == Shape::kList && !value->is_array())
    fields.Fault(name, "not a list, allowed: [one, two]");
  if (shape == Shape::kMap && !value->is_object())
    fields.Fault(name, "not a mapping, allowed: {key: value}");
  return ValueOf(*value, fields.PathOf(name), fields.errors());
}

YamlValue YamlDocument::ValueOf(const nlohmann::json& value, const std::string& path,
                                api::Errors& errors) const {
  const Place& place = places_.at(&value);
  if (!place.tag.empty())
    errors.AddAt(value, path + ": a tag (" + place.tag + ") is not allowed, leave it out");
  if (errors.full()) return {};
  if (value.is_object()) {
    YamlValue::Map map;
    for (const auto& [key, item] : value.items())
      map.emplace_back(key, ValueOf(item, path + "." + key, errors));
    std::ranges::sort(map, {}, [&](const auto& entry) { return RankOfKey(value.at(entry.first)); });
    return {.value = std::move(map)};
  }
  if (value.is_array()) {
    YamlValue::List list;
    for (const nlohmann::json& item : value)
      list.push_back(ValueOf(item, path + "[" + std::to_string(list.size()) + "]", errors));
    return {.value = std::move(list)};
  }
  if (!value.is_string()) return {};
  const auto& text = value.get_ref<const std::string&>();
  return place.quoted ? YamlValue{.value = text} : ReadYamlWord(text);
}

Result<std::vector<YAML::Node>> LoadDocuments(std::string_view text, std::string_view file) {
  if (text.size() > kMaxFileBytes) {
    return Error(Code::kInvalidArgument, std::string(file) + ": larger than " +
                                             FormatBytes(kMaxFileBytes) + ", split the file");
  }
  if (text.find('\0') != std::string_view::npos) {
    return Error(Code::kInvalidArgument, std::string(file) + ": not a text file");
  }
  try {
    std::istringstream stream{std::string(text)};
    RETURN_IF_ERROR(CheckLimits(stream, file));
    std::vector<YAML::Node> documents;
    for (YAML::Node& document : YAML::LoadAll(std::string(text))) {
      if (!document.IsNull()) documents.push_back(document);
    }
    return documents;
  } catch (const YAML::Exception& exception) {
    return Error(ErrorAt(file, exception.mark, "not YAML: " + exception.msg));
  }
}

}  // namespace optcache::config::internal
