#include "config/internal/yaml_document.h"

#include <sstream>

#include <yaml-cpp/eventhandler.h>

#include "config/configuration.h"

namespace optcache::config::internal {
namespace {

constexpr int kMaxDepth = 32;

// Walks the text before anything is built, so that a small text cannot become a large tree.
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

}  // namespace

Status ErrorAt(std::string_view file, const YAML::Mark& mark, std::string_view what) {
  const std::string line = mark.is_null() ? "" : ":" + std::to_string(mark.line + 1);
  return {Code::kInvalidArgument, std::string(file) + line + ": " + std::string(what)};
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
