#include "cli/terminal/svg.h"

#include <array>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

// Okabe and Ito's.
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#555555"};

}  // namespace

LineStyle LineStyleOf(std::size_t i) {
  return {.colour = kColours[i % kColours.size()],
          .dashes = i < kColours.size() ? "" : R"( stroke-dasharray="5 3")",
          .width = i == 0 ? 2.5 : 1.5};
}

std::string SvgEscaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string SvgText(double x, double y, std::string_view text, std::string_view more) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, SvgEscaped(text));
}

}  // namespace optcache::cli
