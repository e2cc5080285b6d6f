// Makes HTTP transfers by libcurl's multi interface, on one thread that also runs all callbacks.
//
//   Send ─► waiting_ ─► StartWaiting ─► running_ ─► FinishCompleted ─► done
//             │ deadline                   │ unwanted, Shutdown          on the loop's thread
//             └────────────────────────────┴─► done, with an error
//
// The idea: only the thread touches libcurl; others put requests into a queue and wake it. Handles
// are used again, so that connections stay open, at most concurrent_max of each.
//
// Invariants: each accepted request is in exactly one place, waiting_, running_ or on its way to
// `done`, so its callback runs once. libcurl holds a pointer to a Transfer while it runs, so its
// handle is removed from libcurl before the Transfer may die.

#include "storage/internal/curl.h"

#include <algorithm>
#include <array>
#include <deque>
#include <thread>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/mutex.h"

namespace optcache::storage::internal {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

constexpr Duration kIdleWait = std::chrono::seconds(10);  // the loop looks around this often
constexpr Duration kUnwantedWait = std::chrono::milliseconds(100);  // unwanted ones end within it
constexpr long kRedirectionsMax = 5;  // NOLINT(google-runtime-int): libcurl's
constexpr curl_off_t kRetryAfterSecondsMax = 24L * 60 * 60;
constexpr long kTrustCachedSeconds = 60;          // NOLINT(google-runtime-int): libcurl's
constexpr long kReceiveBufferBytes = 256 * 1024;  // NOLINT(google-runtime-int): libcurl's

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using EasyHandle = std::unique_ptr<CURL, EasyDeleter>;

struct Transfer {
  HttpRequest request;
  HttpCallback done;
  EasyHandle easy;
  std::unique_ptr<curl_slist, ListDeleter> headers;
  std::array<char, CURL_ERROR_SIZE> error_text = {};
  bool body_refused = false;
  std::string error_body;
};

void InitializeLibrary() {
  static const CURLcode kInitialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(kInitialized == CURLE_OK);
}

template <typename T>
T InfoOr(CURL* easy, CURLINFO info, T otherwise) {
  T value = otherwise;
  return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : otherwise;
}

int HttpStatus(CURL* easy) {
  return static_cast<int>(InfoOr<long>(easy, CURLINFO_RESPONSE_CODE, 0));  // NOLINT
}

std::string HeaderOf(CURL* easy, const char* name) {
  curl_header* header = nullptr;
  if (curl_easy_header(easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) return {};
  return header->value;
}

// What would end a line of the request, or libcurl's view of it. Does not repeat values: they may
// be keys.
Status CheckLines(const HttpRequest& request) {
  constexpr std::string_view kEnds("\r\n\0", 3);
  if (request.url.find_first_of(kEnds) != std::string::npos)
    return {Code::kInvalidArgument, "not sent: the address has a line break or a NUL byte in it"};
  for (const std::string_view header : request.headers) {
    if (header.find_first_of(kEnds) == std::string_view::npos) continue;
    return {Code::kInvalidArgument,
            fmt::format("not sent: the header {} has a line break or a NUL byte in it",
                        header.substr(0, header.find_first_of(": \r\n")))};
  }
  return OkStatus();
}

Code CodeOf(CURLcode result, bool deadline_came) {
  switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
      // Otherwise it was the connection that took too long, or silence.
      return deadline_came ? Code::kDeadlineExceeded : Code::kUnavailable;
    case CURLE_PARTIAL_FILE:
      return Code::kDataLoss;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_MANY_REDIRECTS:
      return Code::kInvalidArgument;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return Code::kPermissionDenied;
    case CURLE_OUT_OF_MEMORY:
      return Code::kInternal;
    default:
      return Code::kUnavailable;  // refused, reset, not resolved, closed without an answer
  }
}

Status TransportStatus(const Transfer& transfer, CURLcode result, MonotonicTime now) {
  if (result == CURLE_OK) return OkStatus();
  if (transfer.body_refused) return {Code::kDataLoss, "more bytes came than asked for"};
  const char* text =
      transfer.error_text[0] != '\0' ? transfer.error_text.data() : curl_easy_strerror(result);
  return {CodeOf(result, transfer.request.deadline.Expired(now + milliseconds(1))), text};
}

HttpResponse ResponseOf(const Transfer& transfer, CURLcode result, MonotonicTime now) {
  CURL* const easy = transfer.easy.get();
  HttpResponse response = {.transport = TransportStatus(transfer, result, now)};
  response.http_status = HttpStatus(easy);
  const auto length = InfoOr<curl_off_t>(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, -1);
  if (length >= 0) response.content_length = static_cast<ByteCount>(length);
  response.etag = HeaderOf(easy, "ETag");
  response.content_range = HeaderOf(easy, "Content-Range");
  const auto modified = InfoOr<curl_off_t>(easy, CURLINFO_FILETIME_T, -1);
  response.last_modified_s = std::max<curl_off_t>(modified, 0);
  // Any number of seconds may stand there.
  response.retry_after = std::chrono::seconds(std::clamp<curl_off_t>(
      InfoOr<curl_off_t>(easy, CURLINFO_RETRY_AFTER, 0), 0, kRetryAfterSecondsMax));
  for (const std::string& name : transfer.request.wanted_headers) {
    if (std::string value = HeaderOf(easy, name.c_str()); !value.empty())
      response.headers.emplace(name, std::move(value));
  }
  response.error_body = transfer.error_body;
  return response;
}

// libcurl's write callback: anything but `size * count` ends the transfer.
size_t TakeBody(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const int status = HttpStatus(transfer.easy.get());
  if (status < 200 || status > 299) {
    const size_t room = kErrorBodyBytesMax - transfer.error_body.size();
    transfer.error_body.append(data, std::min(size * count, room));
    return size * count <= room ? size * count : 0;
  }
  if (auto take_head = std::exchange(transfer.request.take_head, nullptr))
    take_head(ResponseOf(transfer, CURLE_OK, {}));
  const ByteSpan piece = AsBytes({data, size * count});
  if (transfer.request.take_body && transfer.request.take_body(status, piece)) return size * count;
  transfer.body_refused = true;
  return 0;
}

// The method and what goes with it.
void SetMethod(CURL* easy, const HttpRequest& request) {
  curl_easy_setopt(easy, CURLOPT_NOBODY, request.method == HttpRequest::Method::kHead ? 1L : 0L);
  const bool put = request.method == HttpRequest::Method::kPut;
  if (!put && request.method != HttpRequest::Method::kPost) return;
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  if (put) curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PUT");
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
}

}  // namespace

// One thread runs all transfers. Requests wait in a bounded queue until one of concurrent_max
// handles is free; the thread also ends those whose deadline comes while they wait.
class HttpClient::Loop {
 public:
  Loop(HttpClientOptions options, const Clock& clock)
      : options_(std::move(options)), clock_(clock) {
    InitializeLibrary();
    multi_.reset(curl_multi_init());
    CHECK(multi_ != nullptr);
    const auto limit = static_cast<long>(std::max(options_.concurrent_max, 1U));  // NOLINT
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, limit);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, limit);
    const MutexLock lock(mutex_);
    thread_ = std::jthread([this] { Run(); });
  }

  Status Send(HttpRequest request, HttpCallback done);
  void Shutdown();
  TransferCounts counts() const {
    const MutexLock lock(mutex_);
    return {.waiting = waiting_.size(), .running = running_count_};
  }

 private:
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  void Run();
  bool StartWaiting(Duration& wait);
  void Start(std::unique_ptr<Transfer> transfer);
  void SetOptions(Transfer& transfer);
  void FinishCompleted();
  void CancelUnwanted(Duration& wait);
  std::unique_ptr<Transfer> Remove(CURL* easy);
  void CancelRunning();

  const HttpClientOptions options_;
  const Clock& clock_;

  // Of the thread alone. Handles before what uses them, so that they go last.
  std::unique_ptr<CURLM, MultiDeleter> multi_;
  std::vector<EasyHandle> free_handles_;
  Transfers running_;

  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Transfer>> waiting_ GUARDED_BY(mutex_);
  size_t running_count_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::jthread thread_ GUARDED_BY(mutex_);
};

Status HttpClient::Loop::Send(HttpRequest request, HttpCallback done) {
  RETURN_IF_ERROR(CheckLines(request));
  auto transfer = std::make_unique<Transfer>(std::move(request), std::move(done));
  {
    const MutexLock lock(mutex_);
    if (stopping_) return {Code::kCancelled, "shut down"};
    if (waiting_.size() >= options_.waiting_max) {
      return {Code::kResourceExhausted, fmt::format("{} requests wait already", waiting_.size())};
    }
    waiting_.push_back(std::move(transfer));
  }
  curl_multi_wakeup(multi_.get());
  return OkStatus();
}

void HttpClient::Loop::Shutdown() {
  std::jthread thread;  // joined at the end
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  curl_multi_wakeup(multi_.get());
}

void HttpClient::Loop::Run() {
  while (true) {
    Duration wait = kIdleWait;
    if (!StartWaiting(wait)) break;
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    const size_t before = running_.size();
    FinishCompleted();
    CancelUnwanted(wait);
    if (running_.size() < before) continue;  // a handle is free, something may wait for it
    const auto wait_ms = duration_cast<milliseconds>(wait).count() + 1;
    curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(wait_ms), nullptr);
  }
  CancelRunning();
}

// Gives free handles to waiting requests and ends those that waited too long; false when stopping.
// Lowers `wait` to the time until the next of them would have waited too long.
bool HttpClient::Loop::StartWaiting(Duration& wait) {
  Transfers to_start;
  Transfers expired;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return false;
    const MonotonicTime now = clock_.Now();
    std::erase_if(waiting_, [&](std::unique_ptr<Transfer>& transfer) {
      if (!transfer->request.deadline.Expired(now)) return false;
      expired.push_back(std::move(transfer));
      return true;
    });
    while (!waiting_.empty() && running_.size() + to_start.size() < options_.concurrent_max) {
      to_start.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    for (const auto& transfer : waiting_) {
      wait = std::min(wait, transfer->request.deadline.Remaining(now));
    }
    running_count_ = running_.size() + to_start.size();
  }
  for (auto& transfer : to_start)
    Start(std::move(transfer));
  for (auto& transfer : expired) {
    transfer->done({.transport = {Code::kDeadlineExceeded, "the deadline came before its turn"}});
  }
  return true;
}

void HttpClient::Loop::Start(std::unique_ptr<Transfer> transfer) {
  if (free_handles_.empty()) {
    transfer->easy.reset(curl_easy_init());
    CHECK(transfer->easy != nullptr);
  } else {
    transfer->easy = std::move(free_handles_.back());
    free_handles_.pop_back();
  }
  SetOptions(*transfer);
  CHECK(curl_multi_add_handle(multi_.get(), transfer->easy.get()) == CURLM_OK);
  running_.push_back(std::move(transfer));
}

void HttpClient::Loop::SetOptions(Transfer& transfer) {
  CURL* const easy = transfer.easy.get();
  const HttpRequest& request = transfer.request;
  for (const std::string& header : request.headers) {
    // Appending to a list that is there gives back the same list.
    transfer.headers.reset(curl_slist_append(transfer.headers.release(), header.c_str()));
  }
  const auto remaining =
      duration_cast<milliseconds>(request.deadline.Remaining(clock_.Now())).count() + 1;
  const bool secure = request.url.starts_with("https:");
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  SetMethod(easy, request);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers.get());
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBufferBytes);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "optcache");
  curl_easy_setopt(easy, CURLOPT_FILETIME, 1L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  if (!request.uses_proxies) curl_easy_setopt(easy, CURLOPT_PROXY, "");
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, request.follows_redirections ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_MAXREDIRS, kRedirectionsMax);
  curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, remaining);
  if (request.silence_max > Duration::zero()) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(request.silence_max).count();
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(seconds));  // NOLINT
  }
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   duration_cast<milliseconds>(options_.connect_timeout).count());
  curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, kTrustCachedSeconds);
  if (!request.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, request.ca_file.c_str());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error_text.data());
}

void HttpClient::Loop::FinishCompleted() {
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;  // the message dies with Remove
    const std::unique_ptr<Transfer> transfer = Remove(message->easy_handle);
    HttpResponse response = ResponseOf(*transfer, result, clock_.Now());
    curl_easy_reset(transfer->easy.get());
    free_handles_.push_back(std::move(transfer->easy));
    transfer->done(std::move(response));
  }
}

// Lowers `wait` while there are transfers that may become unwanted.
void HttpClient::Loop::CancelUnwanted(Duration& wait) {
  std::vector<CURL*> unwanted;
  for (const auto& transfer : running_) {
    if (!transfer->request.unwanted) continue;
    wait = std::min(wait, kUnwantedWait);
    if (transfer->request.unwanted()) unwanted.push_back(transfer->easy.get());
  }
  for (CURL* const easy : unwanted) {
    const std::unique_ptr<Transfer> transfer = Remove(easy);  // closes its connection
    curl_easy_reset(easy);
    free_handles_.push_back(std::move(transfer->easy));
    transfer->done({.transport = {Code::kCancelled, "its answer is not wanted any more"}});
  }
}

std::unique_ptr<Transfer> HttpClient::Loop::Remove(CURL* easy) {
  const auto found = std::ranges::find(running_, easy, [](const auto& t) { return t->easy.get(); });
  CHECK(found != running_.end());
  std::unique_ptr<Transfer> transfer = std::move(*found);
  *found = std::move(running_.back());
  running_.pop_back();
  curl_multi_remove_handle(multi_.get(), easy);
  return transfer;
}

void HttpClient::Loop::CancelRunning() {
  Transfers cancelled = std::move(running_);
  for (const auto& transfer : cancelled) {
    curl_multi_remove_handle(multi_.get(), transfer->easy.get());
  }
  {
    const MutexLock lock(mutex_);
    std::ranges::move(waiting_, std::back_inserter(cancelled));
    waiting_.clear();
    running_count_ = 0;
  }
  for (const auto& transfer : cancelled) {
    transfer->done({.transport = {Code::kCancelled, "shut down"}});
  }
}

HttpClient::HttpClient(HttpClientOptions options, const Clock& clock)
    : loop_(std::make_unique<Loop>(std::move(options), clock)) {}

HttpClient::~HttpClient() {
  Shutdown();
}

Status HttpClient::Send(HttpRequest request, HttpCallback done) {
  return loop_->Send(std::move(request), std::move(done));
}

void HttpClient::Shutdown() {
  loop_->Shutdown();
}

TransferCounts HttpClient::counts() const {
  return loop_->counts();
}

}  // namespace optcache::storage::internal
