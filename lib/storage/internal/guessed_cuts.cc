// Guesses where keys lie that have not been seen, by reading a stretch of each key as a number.
//
// The idea: keys of a folder usually count (img_0000001) or are spread evenly (digests). The
// stretch begins where the keys of the page differ and grows to the left. Its digits are the
// smallest usual alphabet that has all characters seen: decimal, hexadecimal, or just those. The
// page covers a number of these numbers. If what is ahead is as full, that tells how many pages it
// has, and cuts are numbers between.
//
// If the range has an end, cuts are spaced evenly. If not, nobody knows how much of what is
// possible exists, so each piece is longer than the one before by a factor. Guesses may be wrong in
// any way: the caller only needs them to ascend within its range, which is checked last.

#include "storage/internal/guessed_cuts.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/utf8.h"

namespace optcache::storage::internal {
namespace {

using Characters = std::bitset<256>;

constexpr size_t kDigitsBelow = 4;  // of those that differ in the page: finer than a page is
constexpr double kPagesAPiece = 4;

size_t CommonLength(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

Characters Of(std::string_view characters) {
  Characters all;
  for (const char c : characters)
    all.set(static_cast<unsigned char>(c));
  return all;
}

// All that may stand where keys differ: the class of what does, or just that.
Characters Widened(const Characters& seen) {
  for (const std::string_view characters : {"0123456789", "0123456789abcdef", "0123456789ABCDEF"}) {
    const Characters whole = Of(characters);
    if ((seen & ~whole).none()) return whole;
  }
  return seen;
}

// A stretch of a key, read as a number: at some places stand digits of one base, at the others what
// stands there in all keys.
class KeyNumber {
 public:
  // `differ_at` is the first place at which the keys of the page differ.
  KeyNumber(const std::vector<std::string_view>& keys, size_t folder, size_t differ_at);

  bool usable() const { return digits_.size() >= 2 && count_ > 1; }
  std::uint64_t count() const { return count_; }  // how many numbers there are
  std::uint64_t ValueOf(std::string_view key) const;
  std::string KeyOf(std::uint64_t value) const;
  bool HasPrefixOf(std::string_view key) const {
    return key.starts_with(example_.substr(0, begin_));
  }

 private:
  bool IsDigit(unsigned char c) const { return digits_.find(static_cast<char>(c)) != digits_.npos; }
  // Takes one more place into the number, if it does not get too large.
  bool Grow(size_t place);

  std::string_view example_;  // the last key
  std::string digits_;        // ascending
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<bool> is_digit_;  // from begin_
  std::uint64_t count_ = 1;
};

KeyNumber::KeyNumber(const std::vector<std::string_view>& keys, size_t folder, size_t differ_at)
    : example_(keys.back()), begin_(differ_at), end_(differ_at) {
  Characters all;
  for (size_t place = differ_at; place < differ_at + kDigitsBelow; ++place) {
    Characters here;
    for (const std::string_view key : keys) {
      if (place < key.size()) here.set(static_cast<unsigned char>(key[place]));
    }
    if (here.count() < 2) break;
    all |= here;
    ++end_;
  }
  all = Widened(all);
  for (size_t c = 0; c < all.size(); ++c) {
    if (all[c]) digits_ += static_cast<char>(c);
  }
  is_digit_.assign(end_ - begin_, true);
  for (size_t place = begin_; place < end_; ++place)
    count_ *= digits_.size();
  while (begin_ > folder && Grow(begin_ - 1)) {
  }
}

bool KeyNumber::Grow(size_t place) {
  const bool digit = IsDigit(static_cast<unsigned char>(example_[place]));
  if (digit) {
    if (count_ > (std::numeric_limits<std::uint64_t>::max() >> 2U) / digits_.size()) return false;
    count_ *= digits_.size();
  }
  is_digit_.insert(is_digit_.begin(), digit);
  begin_ = place;
  return true;
}

std::uint64_t KeyNumber::ValueOf(std::string_view key) const {
  std::uint64_t value = 0;
  for (size_t place = begin_; place < end_; ++place) {
    if (!is_digit_[place - begin_]) continue;
    size_t digit = 0;
    if (place < key.size()) {
      const auto below = [](char a, char b) {
        return static_cast<unsigned char>(a) < static_cast<unsigned char>(b);
      };
      const auto at = std::ranges::lower_bound(digits_, key[place], below);
      digit = std::min(static_cast<size_t>(at - digits_.begin()), digits_.size() - 1);
    }
    value = value * digits_.size() + digit;
  }
  return value;
}

std::string KeyNumber::KeyOf(std::uint64_t value) const {
  std::string key(example_.substr(0, end_));
  key.resize(end_, digits_.front());  // the last key may be shorter than others
  for (size_t place = end_; place > begin_; --place) {
    if (!is_digit_[place - 1 - begin_]) continue;
    key[place - 1] = digits_[value % digits_.size()];
    value /= digits_.size();
  }
  return key;
}

// Servers refuse what is no UTF-8, and letters of several bytes may have been cut or mixed: up to
// there it is as good a guess.
void CutToUtf8(std::string& guess) {
  size_t end = 0;
  while (const size_t length = Utf8Length(std::string_view(guess).substr(end)))
    end += length;
  guess.resize(end);
}

}  // namespace

std::vector<std::string> GuessCuts(const SeenKeys& seen, size_t cuts_max) {
  if (seen.keys.size() < 2 || cuts_max == 0) return {};
  const std::string_view first = seen.keys.front();
  const std::string_view last = seen.keys.back();
  const size_t differ_at = CommonLength(first, last);
  const size_t slash = last.rfind('/');
  const size_t folder = slash == std::string_view::npos ? 0 : slash + 1;
  if (differ_at < folder) return {};
  const KeyNumber number(seen.keys, folder, differ_at);
  if (!number.usable()) return {};

  const std::uint64_t now = number.ValueOf(last);
  const double page = static_cast<double>(std::max<std::uint64_t>(now - number.ValueOf(first), 1));
  const bool bounded = !seen.end.empty() && number.HasPrefixOf(seen.end);
  const std::uint64_t end = bounded ? number.ValueOf(seen.end) : number.count();
  const double pages = end > now ? static_cast<double>(end - now) / page : 0;
  const double pieces = std::min(static_cast<double>(cuts_max) + 1, pages / kPagesAPiece);
  std::vector<std::string> cuts;
  for (double piece = 1; piece < pieces; ++piece) {
    // Nobody knows how much of what is possible is there: then the near is more likely than the
    // far, and each piece is this many times as long as all before it.
    const double share = piece / pieces;
    const double ahead =
        bounded ? share * pages : kPagesAPiece * std::pow(pages / kPagesAPiece, share);
    std::string cut = number.KeyOf(now + static_cast<std::uint64_t>(ahead * page));
    CutToUtf8(cut);
    const std::string_view before = cuts.empty() ? last : std::string_view(cuts.back());
    if (cut > before && (seen.end.empty() || cut < seen.end)) cuts.push_back(std::move(cut));
  }
  return cuts;
}

}  // namespace optcache::storage::internal
