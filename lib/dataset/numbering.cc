#include "dataset/numbering.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dataset/image_folder.h"

namespace optcache::dataset {
namespace {

using Paths = std::vector<std::string_view>;

bool HasClassFolders(const Paths& paths, const GlobSet& include) {
  return std::ranges::any_of(paths, [&](std::string_view path) {
    if (path.find('/') == std::string_view::npos) return false;
    return include.empty() ? IsImage(path) : include.Matches(path);
  });
}

Result<Numbering> NumberImages(const Paths& paths, const std::vector<std::string>& top_folders,
                               const GlobSet& include) {
  ASSIGN_OR_RETURN(ImageFolder images, NumberAsImageFolder(paths, top_folders, include));
  return Numbering{.order = Order::kImageFolder,
                   .classes = std::move(images.classes),
                   .objects = std::move(images.members),
                   .class_of = std::move(images.class_of)};
}

void SortByPath(const Paths& paths, std::vector<std::uint32_t>& objects) {
  std::vector<std::pair<std::string, std::uint32_t>> keyed;
  keyed.reserve(objects.size());
  for (const std::uint32_t i : objects) {
    keyed.emplace_back(PythonSortKey(paths[i]), i);
  }
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, objects.begin(), [](const auto& entry) { return entry.second; });
}

Numbering NumberPlainly(const Paths& paths, const GlobSet& include, Order order) {
  Numbering numbering = {.order = order};
  for (std::uint32_t i = 0; i < paths.size(); ++i) {
    if (include.empty() || include.Matches(paths[i])) numbering.objects.push_back(i);
  }
  if (order == Order::kPath) SortByPath(paths, numbering.objects);
  return numbering;
}

// One object under two numbers is two samples to the trainer but one to every cache: a mistake in
// a listing, better found now.
Status CheckNoDuplicates(const Paths& paths, const Numbering& numbering) {
  Paths sorted;
  sorted.reserve(numbering.objects.size());
  for (const std::uint32_t object : numbering.objects)
    sorted.push_back(paths[object]);
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice == sorted.end()) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("{} is listed twice: remove one of the entries", *twice)};
}

Status NoSamples(const Paths& paths, const GlobSet& include) {
  if (paths.empty()) {
    return {Code::kInvalidArgument, "there is no object: check the address of the source"};
  }
  return {Code::kInvalidArgument,
          fmt::format("none of the {} objects is a sample{}", paths.size(),
                      include.empty() ? "" : ": check the include patterns")};
}

}  // namespace

Order ChosenOrder(const Paths& paths, const NumberingOptions& options) {
  if (options.order) return *options.order;
  return HasClassFolders(paths, options.include) ? Order::kImageFolder : Order::kPath;
}

Result<Numbering> NumberSamples(const Paths& paths, const std::vector<std::string>& top_folders,
                                const NumberingOptions& options) {
  if (paths.empty()) return Error(NoSamples(paths, options.include));
  const Order order = ChosenOrder(paths, options);
  Numbering numbering;
  if (order == Order::kImageFolder) {
    ASSIGN_OR_RETURN(numbering, NumberImages(paths, top_folders, options.include));
  } else {
    numbering = NumberPlainly(paths, options.include, order);
  }
  if (numbering.objects.empty()) return Error(NoSamples(paths, options.include));
  RETURN_IF_ERROR(CheckNoDuplicates(paths, numbering));
  return numbering;
}

}  // namespace optcache::dataset
