#pragma once

// Which dataset a user means.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace optcache::cli {

// The place in `names`, NAMESPACE/NAME each, of the one that is `word`, or else of the only one
// that has it as its NAME. kNotFound: there is none, and the message says which there are;
// kInvalidArgument: several have it, and the message names them and says what to write.
Result<std::size_t> PlaceOfDataset(const std::vector<std::string>& names, std::string_view word);

// The same of values that have such a name: a member or a function. The result points into
// `datasets`.
template <typename Dataset, typename NameOf>
Result<const Dataset*> FindDataset(const std::vector<Dataset>& datasets, std::string_view word,
                                   NameOf name_of) {
  std::vector<std::string> names;
  names.reserve(datasets.size());
  for (const Dataset& dataset : datasets)
    names.push_back(std::invoke(name_of, dataset));
  ASSIGN_OR_RETURN(const std::size_t place, PlaceOfDataset(names, word));
  return &datasets[place];
}

}  // namespace optcache::cli
