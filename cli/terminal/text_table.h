#pragma once

// Columns of text that line up.

#include <string>
#include <vector>

namespace optcache::cli {

// Two spaces between columns, none at the end of a line; the first row is the head. Cells are
// counted in code points of UTF-8, and shown as Visible() shows text from outside.
std::string FormatTable(std::vector<std::vector<std::string>> rows);

}  // namespace optcache::cli
