#include "cli/terminal/live_screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

namespace optcache::cli {
namespace {

// What cannot be written is lost: there is nobody to tell.
void Write(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Back to the block's first line, and everything below it wiped.
std::string Wipe(std::size_t lines) {
  return lines == 0 ? "" : fmt::format("\x1b[{}F\x1b[J", lines);
}

}  // namespace

std::string FitToScreen(const std::string& block, std::size_t columns, std::size_t rows) {
  std::string out;
  std::istringstream lines(block);
  std::string line;
  for (std::size_t row = 0; row < rows && std::getline(lines, line); ++row) {
    std::size_t width = 0;
    std::size_t end = 0;
    for (; end < line.size(); ++end) {
      const bool begins = (static_cast<unsigned char>(line[end]) & 0xc0U) != 0x80U;
      if (begins && ++width > columns) break;
    }
    out += line.substr(0, end) + "\n";
  }
  return out;
}

LiveScreen::LiveScreen(int fd) : fd_(fd), is_terminal_(::isatty(fd) == 1) {}

void LiveScreen::Draw(const std::string& block) {
  if (!is_terminal_) return;
  winsize size{};
  const bool known = ::ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 && size.ws_col > 0;
  block_ = block;
  const std::string shown = known ? FitToScreen(block, size.ws_col, size.ws_row - 1U) : block;
  Write(fd_, Wipe(lines_) + shown);
  lines_ = static_cast<std::size_t>(std::ranges::count(shown, '\n'));
}

void LiveScreen::Say(const std::string& line) {
  Write(fd_, Wipe(lines_) + line + "\n");
  lines_ = 0;
  if (!block_.empty()) Draw(block_);
}

}  // namespace optcache::cli
