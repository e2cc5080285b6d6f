#pragma once

// From what a source holds to numbered samples.

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dataset/glob.h"
#include "dataset/manifest.h"
#include "dataset/validator.h"

namespace optcache::dataset {

struct ObjectEntry {
  std::string path;  // relative to the source's root, `/` between components
  ByteCount size = 0;
  Validator validator;
};

// What a source holds.
struct Listing {
  std::vector<ObjectEntry> objects;      // in the order of the source
  std::vector<std::string> top_folders;  // names of all top-level folders, empty ones too
};

struct NumberingOptions {
  // Unset: kImageFolder if some image lies in a top-level folder, else kPath.
  std::optional<Order> order;
  // Which objects are samples. Empty: images under kImageFolder, all objects otherwise.
  GlobSet include;
};

struct Numbering {
  Order order = Order::kPath;
  std::vector<std::string> classes;
  std::vector<std::uint32_t> objects;  // by sample: its place in Listing::objects
  std::vector<ClassIndex> class_of;    // by sample; empty without classes
};

// Numbers the samples of a listing. kInvalidArgument says what to do when there is no sample, when
// two objects have one path, or what NumberAsImageFolder refuses.
Result<Numbering> NumberSamples(const Listing& listing, const NumberingOptions& options);

}  // namespace optcache::dataset
