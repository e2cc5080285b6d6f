#pragma once

// Files that are compared word for word: tests/golden. UPDATE_GOLDEN=1 writes them anew.

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "support/source_dir.h"

namespace optcache {

// `name` is the file's path below tests/golden.
inline void ExpectGolden(const std::string& text, const std::string& name) {
  const std::string path = InRepository("tests/golden/" + name);
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream file(path);
  EXPECT_EQ(text, std::string(std::istreambuf_iterator<char>(file), {}))
      << name << ": if that is right, UPDATE_GOLDEN=1";
}

}  // namespace optcache
