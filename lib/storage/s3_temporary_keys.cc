// Keeps keys that end, asks for newer ones in time, and lets only those wait who have none.
//
//   Get ─► the keys are good: given at once; close to their end, Ask begins beside that
//      └─► they are not: the caller waits in waiting_ ─► Ask ─► Finish ─► all callbacks
//
// The idea: a read never waits for a renewal while the old keys are good. Only the first keys, and
// those after an outage that outlasted the old ones, are waited for.
//
// Invariants: one Ask is under way at a time (`asking_`), and each ends in one Finish. A renewal
// that failed is tried again after retry_after, but at once if a caller waits. Callbacks run
// without the lock. The client is the last member, since its thread calls back into the others.

#include "storage/s3_temporary_keys.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/whole_number.h"
#include "storage/internal/curl.h"
#include "storage/internal/key_files.h"

namespace optcache::storage {
namespace {

constexpr ByteCount kKeyAnswerBytesMax = 256_KiB;

std::unexpected<Status> BadKeyAnswer(std::string_view why) {
  return Error(Code::kDataLoss, fmt::format("the answer with keys: {}", why));
}

// As many digits as `out` takes, at the front of `text`.
bool TakeNumber(std::string_view& text, size_t digits, int& out) {
  if (text.size() < digits) return false;
  const auto number = ParseWholeNumber<unsigned>(text.substr(0, digits));
  text.remove_prefix(digits);
  out = static_cast<int>(number.value_or(0));
  return number.has_value();
}

bool TakeCharacter(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// Empty if there is none.
std::string TextIn(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

Result<double> ParseUtcTime(std::string_view text) {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::string_view rest = text;
  const bool numbers =
      TakeNumber(rest, 4, year) && TakeCharacter(rest, '-') && TakeNumber(rest, 2, month) &&
      TakeCharacter(rest, '-') && TakeNumber(rest, 2, day) && TakeCharacter(rest, 'T') &&
      TakeNumber(rest, 2, hour) && TakeCharacter(rest, ':') && TakeNumber(rest, 2, minute) &&
      TakeCharacter(rest, ':') && TakeNumber(rest, 2, second);
  if (numbers && TakeCharacter(rest, '.')) {
    const size_t end = rest.find_first_not_of("0123456789");
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end);
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!numbers || rest != "Z" || !date.ok() || hour > 23 || minute > 59 || second > 60)
    return BadKeyAnswer("there is a time in it that is none");
  const auto days = std::chrono::sys_days(date).time_since_epoch();
  const auto time =
      days + std::chrono::hours(hour) + std::chrono::minutes(minute) + std::chrono::seconds(second);
  return std::chrono::duration<double>(time).count();  // of any year, unlike ToSeconds
}

Result<S3TemporaryKeys> ParseKeyAnswer(std::string_view json) {
  if (json.size() > kKeyAnswerBytesMax) return BadKeyAnswer("it is too long");
  const nlohmann::json answer = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object()) return BadKeyAnswer("it is no JSON object");
  if (const std::string code = TextIn(answer, "Code"); !code.empty() && code != "Success") {
    const bool fit = internal::IsKeyText(code) && code.size() <= 100;
    return Error(Code::kPermissionDenied,
                 fmt::format("the answer with keys: its Code is {}", fit ? code : "no word"));
  }
  S3TemporaryKeys keys = {.credentials = {.access_key_id = TextIn(answer, "AccessKeyId"),
                                          .secret_access_key = TextIn(answer, "SecretAccessKey"),
                                          .session_token = TextIn(answer, "Token")}};
  const S3Credentials& c = keys.credentials;
  if (!internal::IsKeyText(c.access_key_id) || !internal::IsKeyText(c.secret_access_key) ||
      !(c.session_token.empty() || internal::IsKeyText(c.session_token)))
    return BadKeyAnswer("a part of the keys is missing, or is no key");
  ASSIGN_OR_RETURN(keys.expires_unix_s, ParseUtcTime(TextIn(answer, "Expiration")));
  return keys;
}

S3TemporaryKeySource::S3TemporaryKeySource(S3RenewalOptions options, const Clock& clock)
    : options_(options),
      clock_(clock),
      client_(std::make_unique<internal::HttpClient>(
          internal::HttpClientOptions{
              .concurrent_max = 1, .waiting_max = 1, .connect_timeout = options.connect_timeout},
          clock)) {}

S3TemporaryKeySource::~S3TemporaryKeySource() = default;

Result<std::optional<S3Credentials>> S3TemporaryKeySource::Get(S3CredentialsCallback& later) {
  std::optional<S3Credentials> now;
  bool ask = false;
  {
    const MutexLock lock(mutex_);
    if (stopping_) return Error(Code::kCancelled, "shut down");
    const double unix_s = clock_.UnixSeconds();
    if (unix_s < keys_.expires_unix_s) {
      now = keys_.credentials;
    } else if (waiting_.size() >= options_.waiting_max) {
      return Error(Code::kResourceExhausted,
                   fmt::format("{} requests wait for keys already", waiting_.size()));
    } else {
      waiting_.push_back(std::move(later));
    }
    // Who waits is not to wait for the next try of a renewal.
    ask = !asking_ && (!now || unix_s >= renew_unix_s_);
    if (ask) asking_ = true;
  }
  if (ask) Ask();
  return now;
}

void S3TemporaryKeySource::Send(internal::HttpRequest request, std::string_view what,
                                Answered answered) {
  request.follows_redirections = false;
  // Shared: the client keeps one end until the transfer is over, the callback the other.
  const auto body = std::make_shared<std::string>();
  request.take_body = [body](int /*http_status*/, ByteSpan piece) {
    *body += AsText(piece);
    return body->size() <= kKeyAnswerBytesMax;
  };
  auto done = [this, body, what = std::string(what),
               answered = std::move(answered)](const internal::HttpResponse& response) mutable {
    if (response.http_status >= 300) return Finish(Refused(response, what));
    if (!response.transport.ok())
      return Finish(Error(Status(response.transport).WithContext(what)));
    answered(response, *body);
  };
  const Status sent = client_->Send(std::move(request), std::move(done));
  if (!sent.ok()) Finish(Error(sent));
}

Result<S3TemporaryKeys> S3TemporaryKeySource::Refused(const internal::HttpResponse& response,
                                                      std::string_view what) const {
  const int http_status = response.http_status;
  const bool later = http_status >= 500 || http_status == 429 || http_status == 408;
  return Error(later ? Code::kUnavailable : Code::kPermissionDenied,
               fmt::format("{}: HTTP {}", what, http_status));
}

void S3TemporaryKeySource::Finish(Result<S3TemporaryKeys> keys) {
  const double now = clock_.UnixSeconds();
  if (keys && keys->expires_unix_s <= now)
    keys = Error(Code::kUnavailable, "the keys that came have expired already: check clocks");
  std::vector<S3CredentialsCallback> waiting;
  {
    const MutexLock lock(mutex_);
    asking_ = false;
    waiting.swap(waiting_);
    if (keys) {
      keys_ = *keys;
      const double left = keys->expires_unix_s - now;
      const double before = ToSeconds(options_.renew_before);
      renew_unix_s_ = keys->expires_unix_s - std::min(before, left / 2);
    } else {
      renew_unix_s_ = now + ToSeconds(options_.retry_after);
    }
  }
  if (!keys && waiting.empty()) {
    Log(LogLevel::kWarning, "keys are not renewed, the old ones are used while they last",
        {{"why", keys.error().message()}});
  }
  for (S3CredentialsCallback& later : waiting) {
    if (keys) {
      later(keys->credentials);
    } else {
      later(Error(keys.error()));
    }
  }
}

void S3TemporaryKeySource::Shutdown() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  client_->Shutdown();  // who waits is called back with kCancelled
}

}  // namespace optcache::storage
