// Writes, reads and compares recipes as words, from one table of fields.
//
// The idea: VisitFields lists each field once, with its name and its member. Writing, reading and
// comparing are three visits of the same list, so they cannot disagree, and a new field is one
// line. What has its default is not written, and fields come in the order of the list: a recipe has
// one text, so texts can be compared. A word that is unknown here is an error and not skipped,
// because the order that it changes would be replayed wrongly.

#include "sampler/recipe_text.h"

#include <algorithm>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/whole_number.h"

namespace optcache::sampler {
namespace {

constexpr std::size_t kMaxDifferenceBytes = 512;

// --- Values: each has a Write and a Read that agree.

std::string Write(bool value) {
  return value ? "true" : "false";
}
template <typename Number>
std::string Write(Number value) {
  return std::to_string(value);
}
std::string Write(BaseSeed value) {
  return std::string(BaseSeedName(value));
}
std::string Write(const std::vector<IdRange>& ranges) {
  std::string text;
  for (const IdRange& range : ranges) {
    text +=
        (text.empty() ? "" : ",") + std::to_string(range.first) + "+" + std::to_string(range.count);
  }
  return text;
}

bool Read(std::string_view text, bool& value) {
  value = text == "true";
  return value || text == "false";
}
template <typename Number>
bool Read(std::string_view text, Number& value) {
  const auto parsed = ParseWholeNumber<Number>(text);
  if (parsed) value = *parsed;
  return parsed.has_value();
}
bool Read(std::string_view text, BaseSeed& value) {
  const auto parsed = ParseBaseSeed(text);
  if (parsed) value = *parsed;
  return parsed.has_value();
}
bool Read(std::string_view text, std::vector<IdRange>& ranges) {
  ranges.clear();
  while (ranges.size() <= kMaxRanges) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, comma);
    const std::size_t plus = range.find('+');
    IdRange& read = ranges.emplace_back();
    if (plus == std::string_view::npos || !Read(range.substr(0, plus), read.first) ||
        !Read(range.substr(plus + 1), read.count)) {
      return false;
    }
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
  return false;
}

// --- Fields, in the order in which they are written.

template <typename Visitor>
void VisitFields(Visitor&& visit) {
  visit("size", &Recipe::size);
  visit("seed", &Recipe::seed);
  visit("world", &Recipe::world);
  visit("shuffle", &Recipe::shuffle);
  visit("drop_last", &Recipe::drop_last);
  visit("modern_randperm", &Recipe::modern_randperm);
  visit("base_seed", &Recipe::base_seed);
  visit("tail_permutation", &Recipe::tail_permutation);
  visit("replacement", &Recipe::replacement);
  visit("draws", &Recipe::draws);
  visit("block", &Recipe::block);
  visit("sharded", &Recipe::sharded);
  visit("subset", &Recipe::subset);
}

std::optional<Status> ReadField(std::string_view name, std::string_view text, Recipe& recipe) {
  std::optional<Status> done;
  VisitFields([&](std::string_view field, auto member) {
    if (field != name) return;
    done = Read(text, recipe.*member)
               ? OkStatus()
               : Status(Code::kInvalidArgument,
                        "recipe: '" + std::string(text) + "' is no value of " + std::string(name));
  });
  return done;
}

std::string_view TakeWord(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

std::string FormatRecipe(const Recipe& recipe) {
  const Recipe usual{.kind = recipe.kind};
  std::string text(KindName(recipe.kind));
  VisitFields([&](std::string_view name, auto member) {
    if (recipe.*member == usual.*member) return;
    text.append(" ").append(name).append("=").append(Write(recipe.*member));
  });
  return text;
}

Result<Recipe> ParseRecipe(std::string_view text) {
  if (text.size() > kMaxRecipeBytes) {
    return Error(Code::kInvalidArgument, "a recipe has " + std::to_string(text.size()) +
                                             " bytes, at most " + std::to_string(kMaxRecipeBytes) +
                                             " are allowed");
  }
  Recipe recipe;
  ASSIGN_OR_RETURN(recipe.kind, ParseKind(TakeWord(text)));
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::string_view word = TakeWord(text);
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const auto read = ReadField(name, word.substr(std::min(equals + 1, word.size())), recipe);
    if (!read) {
      return Error(Code::kInvalidArgument,
                   "recipe: '" + std::string(word) + "' is not known to this version");
    }
    RETURN_IF_ERROR(*read);
    if (std::ranges::find(names, name) != names.end()) {
      return Error(Code::kInvalidArgument, "recipe: " + std::string(name) + " is there twice");
    }
    names.push_back(name);
  }
  RETURN_IF_ERROR(Validate(recipe));
  return recipe;
}

std::string FirstDifference(const Recipe& one, const Recipe& other) {
  if (one.kind != other.kind) {
    return "sampler: " + std::string(KindName(one.kind)) + " and " +
           std::string(KindName(other.kind));
  }
  std::string difference;
  VisitFields([&](std::string_view name, auto member) {
    if (!difference.empty() || one.*member == other.*member) return;
    difference = std::string(name) + ": " + Write(one.*member) + " and " + Write(other.*member);
  });
  return difference.substr(0, kMaxDifferenceBytes);
}

}  // namespace optcache::sampler
