// Lists a bucket by ranges of keys, which threads take from a queue and cut for one another.
//
//   waiting_ ─► ListRange: a page, a page, ... ─► the thread's KeyList ─► found_, at the end
//      ▲           └─ threads are idle? CutAtFolders, or else CutAtGuesses
//      └── pieces of what is left ──┘
//
// The idea: nobody knows how keys are spread, so a range is cut only when a thread is idle, and
// after a page has shown how full its folders are. Looks in vain come ever more seldom.
// CutAtFolders asks which folders follow (a request with a delimiter). CutAtGuesses extrapolates
// the keys of the page, for one page in ten in vain at most.
//
// Invariants: a range is (after, end]; cutting splits one range into adjacent ones, so each key is
// listed once. If a server refuses to begin at a guess, OpenGuesses joins that range to the one
// before it. The first error stops all threads.

#include "storage/internal/s3_lister.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "storage/internal/guessed_cuts.h"
#include "storage/internal/open_guesses.h"
#include "storage/key_list.h"

namespace optcache::storage::internal {
namespace {

// Keys above `after`, up to `end` with it.
struct KeyRange {
  std::string after;
  std::string end;                // empty: there is no end
  std::vector<std::string> cuts;  // ascending; where it may be cut, used up from the front
  size_t level = 0;               // of folders below the prefix, where the next cuts are looked for
  // Looks in vain come ever more seldom: this many pages are left until the next.
  size_t pages_until_look = 0;
  size_t pages_until_look_after = 0;
  bool guessed = false;  // it begins at a guess, and its first page has not come yet
};

void KeepCutsWithin(KeyRange& range) {
  std::erase_if(range.cuts, [&](const std::string& cut) {
    return cut <= range.after || (!range.end.empty() && cut >= range.end);
  });
}

// The folder of `key` that is this many levels below `prefix`: all up to a slash, or nothing if it
// has fewer.
std::optional<std::string> FolderAt(const std::string& key, size_t prefix_bytes, size_t level) {
  size_t at = std::min(prefix_bytes, key.size());
  for (; level > 0; --level) {
    const size_t slash = key.find('/', at);
    if (slash == std::string::npos) return std::nullopt;
    at = slash + 1;
  }
  return key.substr(0, at);
}

// How many keys of the page there are in a folder of that level, in the mean.
double KeysPerFolder(const std::vector<S3Key>& keys, size_t prefix_bytes, size_t level) {
  size_t folders = 0;
  std::optional<std::string> last;
  for (const S3Key& key : keys) {
    std::optional<std::string> folder = FolderAt(key.key, prefix_bytes, level);
    if (folders == 0 || folder != last) ++folders;
    last = std::move(folder);
  }
  return folders == 0 ? 0 : static_cast<double>(keys.size()) / static_cast<double>(folders);
}

// Of this many pages that came, one may have been for nothing before guesses end.
constexpr double kPagesAWastedOne = 10;

// Which part of a page was asked for in vain: it is beyond the range, or a guess leads to less.
double WastedOf(const KeyRange& range, const S3Page& page, size_t keys_per_page) {
  const auto end = std::ranges::partition_point(
      page.keys, [&](const S3Key& key) { return range.end.empty() || key.key <= range.end; });
  const bool all = end == page.keys.end() && !page.truncated;
  if (all && !range.guessed) return 0;
  const auto within = static_cast<double>(end - page.keys.begin());
  const size_t whole = all ? keys_per_page : page.keys.size();
  return whole == 0 ? 1 : std::max(0.0, 1 - within / static_cast<double>(whole));
}

bool RangeEnds(const KeyRange& range, const S3Page& page) {
  return !page.truncated || (!range.end.empty() && page.last() >= range.end);
}

// The last key of a range that has an end, whose last page this is.
std::string LastWithin(const KeyRange& range, const S3Page& page) {
  const auto end = std::ranges::partition_point(
      page.keys, [&](const S3Key& key) { return key.key <= range.end; });
  return end == page.keys.begin() ? range.after : std::prev(end)->key;
}

// Thread-safe: Run starts its threads and joins them.
class Lister {
 public:
  Lister(const S3ListOptions& options, const S3PageSource& fetch, const Clock& clock)
      : options_(options), fetch_(fetch), retries_(options.pages, clock), found_(options.prefix) {}

  Result<ObjectListing> Run();

 private:
  void Work();
  std::optional<KeyRange> Next();
  void End(Status status);
  bool stopping() const { return stopping_.load(std::memory_order_relaxed); }
  Status ListRange(KeyRange range, KeyList& found);
  Status CutIfIdle(KeyRange& range, const std::vector<S3Key>& keys);
  Status LookForCuts(KeyRange& range);
  Result<bool> CutAtFolders(KeyRange& range, const std::vector<S3Key>& keys, size_t helpers);
  void CutAtGuesses(KeyRange& range, const std::vector<S3Key>& keys, size_t helpers);
  bool BeginElsewhere(KeyRange& range);
  bool TakeOver(KeyRange& range, const S3Page& page);
  void NotePage(KeyRange& range, const S3Page& page);
  void GiveAway(KeyRange& range, size_t pieces);
  void Give(std::vector<KeyRange> given);
  size_t idle() const {
    const MutexLock lock(mutex_);
    return waiting_.empty() ? idle_ : 0;
  }
  Result<S3Page> Fetch(S3PageRequest request, bool* refused = nullptr);
  Status Take(S3Key key, KeyList& found);

  const S3ListOptions& options_;
  const S3PageSource& fetch_;
  PageRetries retries_;
  std::atomic<std::uint64_t> objects_ = 0;
  std::atomic<bool> stopping_ = false;  // after the first error

  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<KeyRange> waiting_ GUARDED_BY(mutex_);
  unsigned busy_ GUARDED_BY(mutex_) = 0;
  unsigned idle_ GUARDED_BY(mutex_) = 0;
  Status status_ GUARDED_BY(mutex_);
  KeyList found_ GUARDED_BY(mutex_);
  // What guesses cost: of those that are open it is not known yet.
  std::uint64_t pages_ GUARDED_BY(mutex_) = 0;
  double pages_wasted_ GUARDED_BY(mutex_) = 0;
  OpenGuesses guesses_ GUARDED_BY(mutex_);
};

Result<ObjectListing> Lister::Run() {
  const unsigned count = std::max(options_.concurrent_max, 1U);
  {
    const MutexLock lock(mutex_);
    waiting_.push_back({});
    idle_ = count;
  }
  {
    std::vector<std::jthread> threads;
    threads.reserve(count);
    for (unsigned i = 0; i < count; ++i)
      threads.emplace_back([this] { Work(); });
  }
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(status_);
  ObjectListing listing = std::move(found_).Take();
  if (listing.objects.empty() && listing.unfit_keys.empty()) {
    return Error(
        Code::kNotFound,
        fmt::format("there are no objects below \"{}\"; check bucket and prefix", options_.prefix));
  }
  std::ranges::sort(listing.objects, {}, &ListedObject::path);
  return listing;
}

void Lister::Work() {
  KeyList found(options_.prefix);
  while (std::optional<KeyRange> range = Next())
    End(ListRange(*std::move(range), found));
  const MutexLock lock(mutex_);
  found_.Merge(std::move(found));
}

// Waits for a range; nothing if there will be none.
std::optional<KeyRange> Lister::Next() {
  const MutexLock lock(mutex_);
  while (waiting_.empty() && busy_ > 0 && status_.ok()) {
    if (!changed_.WaitUntil(mutex_, options_.pages.deadline.at())) break;
  }
  if (waiting_.empty() || !status_.ok()) return std::nullopt;
  KeyRange range = std::move(waiting_.front());
  waiting_.pop_front();
  ++busy_;
  --idle_;
  return range;
}

void Lister::End(Status status) {
  const bool failed = !status.ok();
  {
    const MutexLock lock(mutex_);
    --busy_;
    ++idle_;
    if (failed) stopping_ = true;
    if (status_.ok()) status_ = std::move(status);
  }
  if (failed) retries_.Stop();
  changed_.NotifyAll();
}

Status Lister::ListRange(KeyRange range, KeyList& found) {
  while (!stopping()) {
    bool refused = false;
    Result<S3Page> page = Fetch({.prefix = options_.prefix, .start_after = range.after}, &refused);
    if (refused && range.guessed) {
      if (!BeginElsewhere(range)) return OkStatus();
      continue;
    }
    RETURN_IF_ERROR(page);
    bool ends = RangeEnds(range, *page);
    while (ends && TakeOver(range, *page))
      ends = RangeEnds(range, *page);
    NotePage(range, *page);
    if (!page->keys.empty()) range.after = page->keys.back().key;
    if (!ends) RETURN_IF_ERROR(CutIfIdle(range, page->keys));
    for (S3Key& key : page->keys) {
      if (!range.end.empty() && key.key > range.end) break;
      RETURN_IF_ERROR(Take(std::move(key), found));
    }
    if (options_.progress) options_.progress(objects_);
    if (ends) break;
  }
  return OkStatus();
}

// Of a range whose guess the server has refused. False: another thread lists it.
bool Lister::BeginElsewhere(KeyRange& range) {
  const MutexLock lock(mutex_);
  ++pages_;
  pages_wasted_ += 1;
  std::optional<std::string> after = guesses_.Refuse(range.after, range.end);
  if (!after) return false;
  range.after = *std::move(after);
  range.guessed = false;
  return true;
}

// After the last page of a range: true if it now reaches further, since the server refuses to begin
// where it ends.
bool Lister::TakeOver(KeyRange& range, const S3Page& page) {
  if (range.end.empty()) return false;
  const MutexLock lock(mutex_);
  std::optional<std::string> end = guesses_.Reach(range.end, LastWithin(range, page));
  if (!end) return false;
  range.end = *std::move(end);
  return true;
}

Status Lister::Take(S3Key key, KeyList& found) {
  const std::uint64_t before = found.size();
  ObjectInfo info{.size = key.size, .validator = {.modified_ns = 0, .etag = std::move(key.etag)}};
  RETURN_IF_ERROR(found.Add(key.key, std::move(info)));
  objects_ += found.size() - before;
  return OkStatus();
}

void Lister::NotePage(KeyRange& range, const S3Page& page) {
  const double wasted = WastedOf(range, page, options_.keys_per_page);
  const MutexLock lock(mutex_);
  ++pages_;
  pages_wasted_ += wasted;
  if (range.guessed) guesses_.Take(range.after);
  range.guessed = false;
}

// Gives pieces of what is left of the range to idle threads.
Status Lister::CutIfIdle(KeyRange& range, const std::vector<S3Key>& keys) {
  const size_t helpers = idle();
  if (helpers == 0) return OkStatus();
  if (range.pages_until_look > 0) {
    --range.pages_until_look;
  } else {
    ASSIGN_OR_RETURN(const bool given, CutAtFolders(range, keys, helpers));
    if (given) return OkStatus();
  }
  CutAtGuesses(range, keys, helpers);
  return OkStatus();
}

// If it is worth a request or more for each piece, by how densely the folders of this page are
// filled.
Result<bool> Lister::CutAtFolders(KeyRange& range, const std::vector<S3Key>& keys, size_t helpers) {
  KeepCutsWithin(range);
  if (range.cuts.empty()) RETURN_IF_ERROR(LookForCuts(range));
  const double left = KeysPerFolder(keys, options_.prefix.size(), range.level) *
                      static_cast<double>(range.cuts.size());
  const auto pages =
      static_cast<size_t>(left / static_cast<double>(std::max<size_t>(options_.keys_per_page, 1)));
  // This range keeps a page as well.
  const size_t pieces = std::min({helpers, range.cuts.size(), std::max<size_t>(pages, 1) - 1});
  if (pieces > 0) {
    GiveAway(range, pieces);
    return true;
  }
  range.pages_until_look_after = 2 * range.pages_until_look_after + 1;
  range.pages_until_look = range.pages_until_look_after;
  return false;
}

// Where a folder is long, by the keys that are seen in it.
void Lister::CutAtGuesses(KeyRange& range, const std::vector<S3Key>& keys, size_t helpers) {
  size_t guesses_max = 0;
  {
    const MutexLock lock(mutex_);
    const double left = static_cast<double>(pages_) / kPagesAWastedOne - pages_wasted_ -
                        static_cast<double>(guesses_.size());
    guesses_max = std::min(helpers, static_cast<size_t>(std::max(left, 0.0)));
  }
  if (guesses_max == 0) return;
  SeenKeys seen = {.keys = {}, .end = range.end};
  seen.keys.reserve(keys.size());
  for (const S3Key& key : keys)
    seen.keys.emplace_back(key.key);
  const std::vector<std::string> guesses = GuessCuts(seen, guesses_max);
  if (guesses.empty()) return;
  // With what is known of folders.
  std::vector<KeyRange> given(guesses.size(), range);
  for (size_t i = 0; i < guesses.size(); ++i) {
    KeyRange& part = given[i];
    part.after = guesses[i];
    if (i + 1 < guesses.size()) part.end = guesses[i + 1];
    part.guessed = true;
    KeepCutsWithin(part);
  }
  range.end = guesses.front();
  KeepCutsWithin(range);
  {
    const MutexLock lock(mutex_);
    for (const KeyRange& part : given)
      guesses_.Add(part.after);
  }
  Give(std::move(given));
}

// Asks which folders follow, at the first level of folders that has any in the range. Afterwards
// range.level is that of the cuts.
Status Lister::LookForCuts(KeyRange& range) {
  if (range.level > 0) --range.level;  // of the folder whose content is asked for
  for (;; ++range.level) {
    const std::optional<std::string> folder =
        FolderAt(range.after, options_.prefix.size(), range.level);
    if (!folder) break;
    ASSIGN_OR_RETURN(S3Page page,
                     Fetch({.prefix = *folder, .start_after = range.after, .roll_up = true}));
    for (std::string& cut : page.common_prefixes) {
      const bool within = cut > range.after && (range.end.empty() || cut < range.end);
      if (within) range.cuts.push_back(std::move(cut));
    }
    if (range.cuts.empty()) continue;
    ++range.level;
    return OkStatus();
  }
  range.level = 0;
  return OkStatus();
}

// Keeps the first piece; the others begin at cuts that are evenly spaced.
void Lister::GiveAway(KeyRange& range, size_t pieces) {
  std::vector<KeyRange> given;
  const size_t step = std::max<size_t>(range.cuts.size() / (pieces + 1), 1);
  std::string end = range.end;
  for (size_t piece = pieces; piece > 0; --piece) {
    const size_t at = std::min(piece * step, range.cuts.size() - 1);
    KeyRange part = {
        .after = range.cuts[at], .end = std::move(end), .cuts = {}, .level = range.level};
    part.cuts.assign(
        std::make_move_iterator(range.cuts.begin() + static_cast<std::ptrdiff_t>(at) + 1),
        std::make_move_iterator(range.cuts.end()));
    end = part.after;
    range.cuts.resize(at);
    given.push_back(std::move(part));
    if (range.cuts.empty()) break;
  }
  range.end = std::move(end);
  Give(std::move(given));
}

void Lister::Give(std::vector<KeyRange> given) {
  {
    const MutexLock lock(mutex_);
    std::ranges::move(given, std::back_inserter(waiting_));
  }
  changed_.NotifyAll();
}

// The next page with something on it, or the last one. `refused`: the server does not list what
// follows request.start_after. What is wrong with pages that it sends is no refusal.
Result<S3Page> Lister::Fetch(S3PageRequest request, bool* refused) {
  const auto bad = [](std::string why) { return Error(Code::kInvalidArgument, std::move(why)); };
  for (unsigned empty_pages = 0; empty_pages < kS3EmptyPagesMax && !stopping(); ++empty_pages) {
    Result<S3Page> asked = retries_.AskFor(request.start_after, [&] { return fetch_(request); });
    if (refused != nullptr)
      *refused = !asked && asked.error().code() == Code::kInvalidArgument && request.token.empty();
    ASSIGN_OR_RETURN(S3Page page, std::move(asked));
    const auto stray = std::ranges::find_if(page.keys, [&](const S3Key& key) {
      return key.key <= request.start_after || !key.key.starts_with(request.prefix);
    });
    if (stray != page.keys.end()) {
      return bad(
          fmt::format("the server lists \"{}\" when asked for what comes after \"{}\" "
                      "below \"{}\": it cannot list by start-after",
                      stray->key, request.start_after, request.prefix));
    }
    if (page.next_token.empty()) {
      if (page.keys.empty() && page.truncated && !request.roll_up)
        return bad("the server sends pages without keys, and says that there are more");
      return page;
    }
    if (page.next_token == request.token)
      return bad("the server sends the same empty page again, and says that there are more");
    request.token = std::move(page.next_token);
  }
  return bad(fmt::format("the server sends {} empty pages in a row, and says that there are more",
                         kS3EmptyPagesMax));
}

}  // namespace

Result<ObjectListing> ListBucket(const S3ListOptions& options, const S3PageSource& fetch,
                                 const Clock& clock) {
  return Lister(options, fetch, clock).Run();
}

}  // namespace optcache::storage::internal
