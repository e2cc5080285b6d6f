#include "storage/internal/open_guesses.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace optcache::storage::internal {

void OpenGuesses::Add(std::string guess) {
  guesses_.insert_or_assign(std::move(guess), Guess{});
}

size_t OpenGuesses::size() const {
  return static_cast<size_t>(std::ranges::count_if(
      guesses_, [](const auto& guess) { return guess.second.state != State::kRefused; }));
}

void OpenGuesses::Take(const std::string& guess) {
  guesses_.erase(guess);
}

std::optional<std::string> OpenGuesses::Refuse(const std::string& guess, std::string end) {
  const auto found = guesses_.find(guess);
  // No range takes any other over: the listing would have a hole.
  CHECK(found != guesses_.end() && found->second.state != State::kRefused);
  if (found->second.state == State::kReached) {
    std::string last = std::move(found->second.key);
    guesses_.erase(found);
    return last;
  }
  found->second = {.state = State::kRefused, .key = std::move(end)};
  return std::nullopt;
}

std::optional<std::string> OpenGuesses::Reach(const std::string& end, std::string last) {
  const auto found = guesses_.find(end);
  if (found == guesses_.end()) return std::nullopt;
  if (found->second.state == State::kRefused) {
    std::string further = std::move(found->second.key);
    guesses_.erase(found);
    return further;
  }
  found->second = {.state = State::kReached, .key = std::move(last)};
  return std::nullopt;
}

}  // namespace optcache::storage::internal
