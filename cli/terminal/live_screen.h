#pragma once

// A block of text at the end of a terminal that is drawn over, with lines of news above it.

#include <cstddef>
#include <string>

namespace optcache::cli {

class LiveScreen {
 public:
  // `fd` stays the caller's. On anything but a terminal there is no block and Draw writes nothing.
  explicit LiveScreen(int fd);

  bool is_terminal() const { return is_terminal_; }
  // Takes the place of the block drawn before. Lines longer than the terminal is wide are cut.
  void Draw(const std::string& block);
  // A line above the block, which is drawn again below it.
  void Say(const std::string& line);

 private:
  int fd_;
  bool is_terminal_;
  std::string block_;
  std::size_t lines_ = 0;  // of the block on the screen
};

// The first `columns` code points of UTF-8 of each line, at most `rows` lines. Pure, for Draw.
std::string FitToScreen(const std::string& block, std::size_t columns, std::size_t rows);

}  // namespace optcache::cli
