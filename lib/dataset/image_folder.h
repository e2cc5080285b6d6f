#pragma once

// How torchvision.datasets.ImageFolder sees a folder, so that sample i here is sample i there.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/glob.h"

namespace optcache::dataset {

// True if the name ends, in whatever case, with one of the extensions that ImageFolder accepts.
bool IsImage(std::string_view path);
// ".jpg, .jpeg, ...": for messages.
std::string_view ImageExtensions();

// Bytes whose plain order is the order of Python's str for file names: Python reads a name as UTF-8
// and turns each byte that is none into a surrogate, which sorts between U+D7FF and U+E000. Names
// that are UTF-8 are their own key.
std::string PythonSortKey(std::string_view name);

struct ImageFolder {
  std::vector<std::string> classes;     // names by class index
  std::vector<std::uint32_t> members;   // by sample: its place in the given paths
  std::vector<std::uint32_t> class_of;  // by sample: its class index
};

// Numbers `paths` (relative, `/` between components) as ImageFolder numbers the files of a folder:
// each top-level folder is a class; classes by name, within a class folders by their whole path,
// within a folder files by name. `top_folders` are the names of all top-level folders, those
// without files too. A file counts if `include` matches it or, where that is empty, if it is an
// image. Files at the top level do not count. kInvalidArgument: no folder at all, or a folder
// without a file that counts, as for ImageFolder.
Result<ImageFolder> NumberAsImageFolder(const std::vector<std::string_view>& paths,
                                        std::vector<std::string> top_folders,
                                        const GlobSet& include);

}  // namespace optcache::dataset
