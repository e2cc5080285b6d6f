#include "dataset/tar_groups.h"

#include <algorithm>

#include <fmt/format.h>

namespace optcache::dataset {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsReserved(std::string_view suffix) {
  return suffix == "__key__" || suffix == "__url__" || suffix == "__local_path__";
}

}  // namespace

std::optional<TarName> SplitTarName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string_view::npos) return std::nullopt;
  if (dot == base) {  // the folder's own name is all that is left for a key
    if (slash == std::string_view::npos) return std::nullopt;
    const size_t above = slash == 0 ? std::string_view::npos : name.rfind('/', slash - 1);
    const size_t folder = above == std::string_view::npos ? 0 : above + 1;
    if (name.substr(folder, slash - folder).find('.') != std::string_view::npos)
      return std::nullopt;
  }
  return TarName{.key = name.substr(0, dot), .suffix = name.substr(dot + 1)};
}

bool IsTarMeta(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() >= 4 && first.starts_with("__") && first.ends_with("__");
}

Status TarGrouper::Add(const TarFile& file) {
  if (IsTarMeta(file.name)) return OkStatus();
  const std::optional<TarName> name = SplitTarName(file.name);
  if (!name) return OkStatus();
  if (groups_.empty() || groups_.back().key != name->key)
    groups_.push_back({.key = std::string(name->key), .members = {}});
  TarGroup& group = groups_.back();
  Member member = {.name = Lower(name->suffix), .offset = file.offset, .size = file.size};
  const auto bad = [&](std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("member {} {}", file.name, why));
  };
  if (IsReserved(member.name)) return bad("has an ending that stands for something else");
  if (group.members.size() == kMembersMax)
    return bad(fmt::format("is one too many of its sample: at most {}", kMembersMax));
  if (std::ranges::find(group.members, member.name, &Member::name) != group.members.end())
    return bad(
        fmt::format("is the second of sample {} that ends with .{}", group.key, member.name));
  group.members.push_back(std::move(member));
  return OkStatus();
}

}  // namespace optcache::dataset
