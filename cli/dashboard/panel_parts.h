#pragma once

// What panel_picture.cc puts together: the inside of a panel, by its kind. Pure.

#include <string>
#include <string_view>

#include "cli/dashboard/panel_picture.h"

namespace optcache::cli {

inline constexpr double kCharacter = 6.2;  // pixels of one, of 11 px sans-serif, on the average

// The inside of a panel, below its title.
struct PanelFrame {
  double left = 0;
  double top = 0;
  double width = 0;
  double height = 0;

  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

std::string DrawTimeSeries(const Panel& panel, const PanelData& data, const TimeRange& range,
                           const PanelFrame& frame);
std::string DrawStateTimeline(const Panel& panel, const PanelData& data, const TimeRange& range,
                              const PanelFrame& frame);
std::string DrawStat(const Panel& panel, const PanelData& data, const PanelFrame& frame);
std::string DrawGauge(const Panel& panel, const PanelData& data, const PanelFrame& frame);
std::string DrawTable(const Panel& panel, const PanelData& data, const PanelFrame& frame);

// Moments below `frame`, with lines through it.
std::string DrawTimeAxis(const TimeRange& range, const PanelFrame& frame);
// As much of `text` as fits into this many pixels.
std::string Shortened(std::string_view text, double width);
// Grafana's name of a colour, in one that all people tell apart.
std::string_view ColourOf(std::string_view name);
// What a value is shown as: its mapping, or with the unit.
std::string ShownValue(const Panel& panel, double value);
std::string_view ShownColour(const Panel& panel, double value);

}  // namespace optcache::cli
