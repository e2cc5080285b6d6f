// Reads the links of a page that shows a folder.
//
// The idea: servers differ in everything but the links, so this is a scan for <a href=...> and no
// parser of HTML. A link counts if it leads to a name right below the page: it is relative, or
// begins with the page's own path. Everything else is left out by that rule: links to other places
// have a slash or a scheme, those that sort the page have a query, and ".." is no name of an
// object.
//
// The order of decoding is that of encoding reversed: HTML's entities first, then percent signs;
// the slash is looked for after both, so an encoded one cannot make a path.

#include "storage/autoindex.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include "dataset/manifest.h"

namespace optcache::storage {
namespace {

char Lowered(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front()))
    text.remove_prefix(1);
  return text;
}

bool TakeWord(std::string_view& text, std::string_view lower_word) {
  if (text.size() < lower_word.size()) return false;
  if (!std::ranges::equal(text.substr(0, lower_word.size()), lower_word, {}, Lowered)) return false;
  text.remove_prefix(lower_word.size());
  return true;
}

// The value of href in what follows "<a": up to the tag's end. Nothing: there is none.
std::optional<std::string_view> HrefOf(std::string_view tag) {
  while (!tag.empty()) {
    if (!IsBlank(tag.front())) {
      // A value in quotes may hold anything, also what looks like an attribute.
      if (tag.front() == '"' || tag.front() == '\'') {
        const size_t end = tag.find(tag.front(), 1);
        if (end == std::string_view::npos) return std::nullopt;
        tag.remove_prefix(end);
      }
      tag.remove_prefix(1);
      continue;
    }
    tag = WithoutBlanks(tag);
    if (!TakeWord(tag, "href")) continue;
    tag = WithoutBlanks(tag);
    if (!TakeWord(tag, "=")) continue;
    tag = WithoutBlanks(tag);
    if (tag.empty()) return std::nullopt;
    if (tag.front() != '"' && tag.front() != '\'')
      return tag.substr(0, tag.find_first_of(" \t\r\n"));
    const size_t end = tag.find(tag.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    return tag.substr(1, end - 1);
  }
  return std::nullopt;
}

// Where the tag ends, quotes heeded.
size_t TagEnd(std::string_view text) {
  char quote = '\0';
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '>') {
      return i;
    }
  }
  return std::string_view::npos;
}

// The character that stands between & and ;, one byte of it: servers percent-encode all others.
std::optional<char> EntityOf(std::string_view name) {
  if (name == "amp") return '&';
  if (name == "lt") return '<';
  if (name == "gt") return '>';
  if (name == "quot") return '"';
  if (name == "apos") return '\'';
  if (!name.starts_with('#')) return std::nullopt;
  name.remove_prefix(1);
  const int base = name.starts_with('x') || name.starts_with('X') ? 16 : 10;
  if (base == 16) name.remove_prefix(1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value, base);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  if (!whole || value == 0 || value > 0x7f) return std::nullopt;
  return static_cast<char>(value);
}

std::string WithoutEntities(std::string_view text) {
  constexpr size_t kEntityBytesMax = 8;
  std::string plain;
  while (!text.empty()) {
    if (text.front() == '&') {
      const size_t end = text.substr(0, kEntityBytesMax).find(';');
      const auto c =
          end == std::string_view::npos ? std::nullopt : EntityOf(text.substr(1, end - 1));
      if (c) {
        plain += *c;
        text.remove_prefix(end + 1);
        continue;
      }
    }
    plain += text.front();
    text.remove_prefix(1);
  }
  return plain;
}

std::string PercentDecoded(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const std::string_view digits = text.substr(i, 3).substr(text[i] == '%' ? 1 : 0);
    if (text[i] == '%' && digits.size() == 2) {
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, value, 16);
      if (error == std::errc() && end == digits.data() + 2) {
        plain += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    plain += text[i];
  }
  return plain;
}

struct Link {
  std::string name;
  bool folder = false;
};

// What a link leads to, if that lies right below the page.
std::optional<Link> ChildOf(std::string_view href, std::string_view page_path) {
  const std::string plain = WithoutEntities(href);
  std::string_view target = plain;
  if (target.starts_with(page_path)) {
    target.remove_prefix(page_path.size());
  } else if (target.starts_with("./")) {
    target.remove_prefix(2);
  } else if (target.substr(0, target.find('/')).find(':') != std::string_view::npos) {
    return std::nullopt;  // a scheme
  }
  if (target.find_first_of("?#") != std::string_view::npos) return std::nullopt;
  Link link = {.name = {}, .folder = target.ends_with('/')};
  if (link.folder) target.remove_suffix(1);
  link.name = PercentDecoded(target);
  // Also ".." and what leads elsewhere on the server, which begins with a slash.
  if (link.name.find('/') != std::string::npos) return std::nullopt;
  if (!dataset::CheckObjectPath(link.name).ok()) return std::nullopt;
  return link;
}

}  // namespace

Result<AutoindexPage> ParseAutoindex(std::string_view html, std::string_view page_path) {
  AutoindexPage page;
  bool any_link = false;
  std::unordered_set<std::string> seen;  // an icon and a name may both be links
  while (true) {
    const size_t begin = html.find('<');
    if (begin == std::string_view::npos) break;
    html.remove_prefix(begin + 1);
    if (html.size() < 2 || Lowered(html[0]) != 'a' || !IsBlank(html[1])) continue;
    const size_t end = TagEnd(html);
    if (end == std::string_view::npos) break;
    const std::optional<std::string_view> href = HrefOf(html.substr(1, end - 1));
    html.remove_prefix(end + 1);
    if (!href) continue;
    any_link = true;
    std::optional<Link> link = ChildOf(*href, page_path);
    if (!link || !seen.insert(link->name).second) continue;
    (link->folder ? page.folders : page.files).push_back(std::move(link->name));
  }
  if (any_link) return page;
  return Error(Code::kInvalidArgument,
               "the page has no links, so it does not show a folder: switch the server's autoindex "
               "on, or give a listing file");
}

}  // namespace optcache::storage
