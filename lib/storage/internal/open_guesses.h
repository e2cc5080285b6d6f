#pragma once

// Ranges of keys that begin at guesses (guessed_cuts.h), while it is not known whether the server
// takes the guess as a place to begin. If it does not, the thread that lists the range before it
// lists this range, too; or, if that range has been listed, this one begins at its last key. Pure.

#include <map>
#include <optional>
#include <string>

namespace optcache::storage::internal {

// Not thread-safe: a value with one owner.
class OpenGuesses {
 public:
  // A range begins at `guess`, and another one ends there.
  void Add(std::string guess);
  // How many are not known to be taken or refused.
  size_t size() const;

  // The server has listed what follows the guess.
  void Take(const std::string& guess);
  // The server refuses to list what follows the guess, up to `end`: the key after which to list
  // instead. Nothing: the range that ends at the guess has not been listed yet and takes this over.
  // The guess was added, and neither taken nor refused.
  std::optional<std::string> Refuse(const std::string& guess, std::string end);

  // A range has been listed up to its end, after whose last key `last` nothing more is in it. If
  // the one that begins at that end was refused: up to where to list instead, empty for all.
  std::optional<std::string> Reach(const std::string& end, std::string last);

 private:
  enum class State { kOpen, kRefused, kReached };
  struct Guess {
    State state = State::kOpen;
    std::string key;  // kRefused: the end of its range; kReached: the last key before it
  };

  std::map<std::string, Guess> guesses_;
};

}  // namespace optcache::storage::internal
