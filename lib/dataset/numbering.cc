#include "dataset/numbering.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dataset/image_folder.h"

namespace optcache::dataset {
namespace {

bool HasClassFolders(const Listing& listing, const GlobSet& include) {
  return std::ranges::any_of(listing.objects, [&](const ObjectEntry& object) {
    if (object.path.find('/') == std::string::npos) return false;
    return include.empty() ? IsImage(object.path) : include.Matches(object.path);
  });
}

Result<Numbering> NumberImages(const Listing& listing, const GlobSet& include) {
  std::vector<std::string_view> paths;
  paths.reserve(listing.objects.size());
  for (const ObjectEntry& object : listing.objects)
    paths.emplace_back(object.path);
  ASSIGN_OR_RETURN(ImageFolder images, NumberAsImageFolder(paths, listing.top_folders, include));
  return Numbering{.order = Order::kImageFolder,
                   .classes = std::move(images.classes),
                   .objects = std::move(images.members),
                   .class_of = std::move(images.class_of)};
}

void SortByPath(const Listing& listing, std::vector<std::uint32_t>& objects) {
  std::vector<std::pair<std::string, std::uint32_t>> keyed;
  keyed.reserve(objects.size());
  for (const std::uint32_t i : objects) {
    keyed.emplace_back(PythonSortKey(listing.objects[i].path), i);
  }
  std::ranges::sort(keyed);
  std::ranges::transform(keyed, objects.begin(), [](const auto& entry) { return entry.second; });
}

Numbering NumberPlainly(const Listing& listing, const GlobSet& include, Order order) {
  Numbering numbering = {.order = order};
  for (std::uint32_t i = 0; i < listing.objects.size(); ++i) {
    if (include.empty() || include.Matches(listing.objects[i].path)) numbering.objects.push_back(i);
  }
  if (order == Order::kPath) SortByPath(listing, numbering.objects);
  return numbering;
}

// One object under two numbers is two samples to the trainer but one to every cache: a mistake in
// a listing, better found now.
Status CheckNoDuplicates(const Listing& listing, const Numbering& numbering) {
  std::vector<std::string_view> paths;
  paths.reserve(numbering.objects.size());
  for (const std::uint32_t object : numbering.objects) {
    paths.emplace_back(listing.objects[object].path);
  }
  std::ranges::sort(paths);
  const auto twice = std::ranges::adjacent_find(paths);
  if (twice == paths.end()) return OkStatus();
  return {Code::kInvalidArgument,
          fmt::format("{} is listed twice: remove one of the entries", *twice)};
}

Status NoSamples(const Listing& listing, const GlobSet& include) {
  if (listing.objects.empty()) {
    return {Code::kInvalidArgument, "there is no object: check the address of the source"};
  }
  return {Code::kInvalidArgument,
          fmt::format("none of the {} objects is a sample{}", listing.objects.size(),
                      include.empty() ? "" : ": check the include patterns")};
}

}  // namespace

Result<Numbering> NumberSamples(const Listing& listing, const NumberingOptions& options) {
  if (listing.objects.empty()) return Error(NoSamples(listing, options.include));
  const Order order = options.order.value_or(
      HasClassFolders(listing, options.include) ? Order::kImageFolder : Order::kPath);
  Numbering numbering;
  if (order == Order::kImageFolder) {
    ASSIGN_OR_RETURN(numbering, NumberImages(listing, options.include));
  } else {
    numbering = NumberPlainly(listing, options.include, order);
  }
  if (numbering.objects.empty()) return Error(NoSamples(listing, options.include));
  RETURN_IF_ERROR(CheckNoDuplicates(listing, numbering));
  return numbering;
}

}  // namespace optcache::dataset
