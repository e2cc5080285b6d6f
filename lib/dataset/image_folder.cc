#include "dataset/image_folder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"

namespace optcache::dataset {
namespace {

constexpr std::array<std::string_view, 9> kExtensions = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                         ".pgm", ".tif",  ".tiff", ".webp"};
constexpr size_t kEmptyClassesNamed = 5;

char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool EndsWithIgnoringCase(std::string_view text, std::string_view ending) {
  if (text.size() < ending.size()) return false;
  return std::ranges::equal(text.substr(text.size() - ending.size()), ending, {}, ToLower);
}

// A path's parts in the order in which they are compared.
struct SortKey {
  std::string path;
  size_t class_end = 0;   // the first slash
  size_t folder_end = 0;  // the last slash
  std::uint32_t member = 0;

  std::string_view class_name() const { return std::string_view(path).substr(0, class_end); }
  std::string_view folder() const { return std::string_view(path).substr(0, folder_end); }
  std::string_view file() const { return std::string_view(path).substr(folder_end + 1); }

  friend bool operator<(const SortKey& a, const SortKey& b) {
    if (const int order = a.class_name().compare(b.class_name()); order != 0) return order < 0;
    if (const int order = a.folder().compare(b.folder()); order != 0) return order < 0;
    return a.file() < b.file();
  }
};

std::vector<SortKey> SortedKeys(const std::vector<std::string_view>& paths,
                                const GlobSet& include) {
  std::vector<SortKey> keys;
  for (std::uint32_t i = 0; i < paths.size(); ++i) {
    const std::string_view path = paths[i];
    if (path.find('/') == std::string_view::npos) continue;
    if (include.empty() ? !IsImage(path) : !include.Matches(path)) continue;
    SortKey key = {.path = PythonSortKey(path), .member = i};
    key.class_end = key.path.find('/');
    key.folder_end = key.path.rfind('/');
    keys.push_back(std::move(key));
  }
  std::ranges::sort(keys, std::less<>());
  return keys;
}

Status NoMembers(std::vector<std::string> empty_classes, const GlobSet& include) {
  const size_t count = empty_classes.size();
  empty_classes.resize(std::min(count, kEmptyClassesNamed));
  return {
      Code::kInvalidArgument,
      fmt::format(
          "class folder{} without {}: {}{}. Remove {}, or number the samples by path "
          "(--order path)",
          count == 1 ? "" : "s",
          include.empty() ? fmt::format("an image ({})", ImageExtensions())
                          : "a file that the include patterns match",
          fmt::join(empty_classes, ", "),
          count > kEmptyClassesNamed ? fmt::format(" and {} more", count - kEmptyClassesNamed) : "",
          count == 1 ? "it" : "them")};
}

}  // namespace

bool IsImage(std::string_view path) {
  return std::ranges::any_of(kExtensions, [&](std::string_view extension) {
    return EndsWithIgnoringCase(path, extension);
  });
}

std::string_view ImageExtensions() {
  return ".jpg, .jpeg, .png, .ppm, .bmp, .pgm, .tif, .tiff, .webp";
}

std::string PythonSortKey(std::string_view name) {
  std::string key;
  key.reserve(name.size());
  while (!name.empty()) {
    const size_t length = Utf8Length(name);
    if (length > 0) {
      key += name.substr(0, length);
      name.remove_prefix(length);
      continue;
    }
    // U+DC00 + byte, written like any other character of three bytes.
    const auto byte = static_cast<unsigned char>(name[0]);
    key += '\xed';
    key += static_cast<char>(0xb0U | (byte >> 6U));
    key += static_cast<char>(0x80U | (byte & 0x3fU));
    name.remove_prefix(1);
  }
  return key;
}

Result<ImageFolder> NumberAsImageFolder(const std::vector<std::string_view>& paths,
                                        std::vector<std::string> top_folders,
                                        const GlobSet& include) {
  if (top_folders.empty()) {
    return Error(Code::kInvalidArgument,
                 "there is no class folder: put each class's images in a folder of its own, or "
                 "number the samples by path (--order path)");
  }
  std::ranges::sort(top_folders, {}, PythonSortKey);
  ImageFolder result;
  std::vector<bool> has_members(top_folders.size());
  std::uint32_t class_index = 0;
  for (const SortKey& key : SortedKeys(paths, include)) {
    const std::string_view class_name = paths[key.member].substr(0, paths[key.member].find('/'));
    // Both lists are in one order, so the class of a path is found by going on.
    while (class_index < top_folders.size() && top_folders[class_index] != class_name) {
      ++class_index;
    }
    if (class_index == top_folders.size()) {
      return Error(Code::kInvalidArgument,
                   fmt::format("{} lies in no folder of the listing", paths[key.member]));
    }
    has_members[class_index] = true;
    result.members.push_back(key.member);
    result.class_of.push_back(class_index);
  }
  std::vector<std::string> empty_classes;
  for (size_t i = 0; i < top_folders.size(); ++i) {
    if (!has_members[i]) empty_classes.push_back(top_folders[i]);
  }
  if (!empty_classes.empty()) return Error(NoMembers(std::move(empty_classes), include));
  result.classes = std::move(top_folders);
  return result;
}

}  // namespace optcache::dataset
