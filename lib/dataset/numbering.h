#pragma once

// From what a source holds to numbered samples.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dataset/glob.h"
#include "dataset/manifest.h"

namespace optcache::dataset {

struct NumberingOptions {
  // Unset: kImageFolder if some image lies in a top-level folder, else kPath.
  std::optional<Order> order;
  // Which objects are samples. Empty: images under kImageFolder, all objects otherwise.
  GlobSet include;
};

// options.order, or what stands for it where it is unset.
Order ChosenOrder(const std::vector<std::string_view>& paths, const NumberingOptions& options);

struct Numbering {
  Order order = Order::kPath;
  std::vector<std::string> classes;
  std::vector<std::uint32_t> objects;  // by sample: its place in the listing
  std::vector<ClassIndex> class_of;    // by sample; empty without classes
};

// Numbers the samples among listed objects. `paths` are relative to the source's root, in the order
// of its listing; `top_folders` names all top-level folders, empty ones too.
// kInvalidArgument says what to do when there is no sample, when two objects have one path, or what
// NumberAsImageFolder refuses.
Result<Numbering> NumberSamples(const std::vector<std::string_view>& paths,
                                const std::vector<std::string>& top_folders,
                                const NumberingOptions& options);

}  // namespace optcache::dataset
