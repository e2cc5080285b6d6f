#include "operator/reconcile/dataset/source_change.h"

#include <fmt/format.h>

#include "base/time_text.h"

namespace optcache::reconcile {
namespace {

void Append(const dataset::ChangedObjects& objects, std::string_view what, std::string& text) {
  if (objects.count == 0) return;
  const std::string_view noun = !text.empty() ? "" : objects.count == 1 ? " object" : " objects";
  text += fmt::format("{}{}{} {} (first {})", text.empty() ? "" : ", ", objects.count, noun, what,
                      objects.first);
}

}  // namespace

std::string DescribeChanges(const dataset::ManifestChanges& changes) {
  std::string text;
  Append(changes.added, "added", text);
  Append(changes.changed, "changed", text);
  Append(changes.removed, "gone", text);
  return text.empty() ? "the same objects make other samples" : text;
}

api::SourceChange SourceChangeOf(const std::optional<dataset::ManifestChanges>& changes,
                                 double now) {
  api::SourceChange change{.at = FormatTime(now)};
  if (!changes) {
    change.message = "it is not known what changed: the earlier list was not compared";
    return change;
  }
  change.added = changes->added.count;
  change.changed = changes->changed.count;
  change.removed = changes->removed.count;
  change.message = DescribeChanges(*changes);
  return change;
}

}  // namespace optcache::reconcile
