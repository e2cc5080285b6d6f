#pragma once

// What pictures are made of: texts and lines as SVG.

#include <cstddef>
#include <string>
#include <string_view>

namespace optcache::cli {

struct LineStyle {
  std::string_view colour;
  std::string_view dashes;  // an attribute, or nothing
  double width;
};

// Of the i-th line of a picture: colours that people tell apart who see fewer, then the same
// dashed.
LineStyle LineStyleOf(std::size_t i);

// `text` as it may stand in an element or an attribute.
std::string SvgEscaped(std::string_view text);

// `more`: further attributes, with a blank before each.
std::string SvgText(double x, double y, std::string_view text, std::string_view more = "");

}  // namespace optcache::cli
