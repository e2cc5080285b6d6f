#pragma once

// What the stores that speak HTTP share: how a read is asked for, how its answer is checked, and
// what a status means.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/internal/curl.h"
#include "storage/object_store.h"

namespace optcache::storage::internal {

// What an answer other than 2xx means to a plain web server's client. `what` begins the message.
Status HttpError(const HttpResponse& response, std::string_view what);

// What sets one protocol over HTTP apart from another. Its parts are called on the client's thread,
// and what they refer to outlives the client.
struct HttpDialect {
  std::function<Status(const HttpResponse& response, std::string_view what)> error = HttpError;
  // The checksums that the headers of an answer with all of an object tell of it, if any.
  std::optional<WholeSums> (*sums_of_whole)(const HttpResponse& response) = nullptr;
  // Of an answer that is an error: ReadOutcome::keys_expired.
  bool (*keys_expired)(const HttpResponse& response) = nullptr;
};

// An ETag that is none by RFC 9110 counts as unknown.
dataset::Validator ValidatorOf(const HttpResponse& response);

// Ok if a complete 2xx answer came.
Status CheckAnswer(const HttpResponse& response, std::string_view what,
                   const HttpDialect& dialect = {});

// True if all of the object is asked for: then by no range.
bool IsWhole(const ReadRequest& request);

// "Range: …" and "If-Match: …", as far as they are needed.
std::vector<std::string> ReadHeaders(const ReadRequest& request);

// Sends `http`, which has all but take_body, and fills the destination of `read`. As
// ObjectStore::Read.
Status SendRead(HttpClient& client, HttpRequest http, ReadRequest read, const HttpDialect& dialect,
                ReadCallback done);

// Blocks until the answer is there, at about the request's deadline at the latest.
Result<HttpResponse> SendAndWait(HttpClient& client, HttpRequest request);

// Of the answer to a HEAD request for `object`.
Result<ObjectInfo> InfoOf(const HttpResponse& response, const std::string& object,
                          const HttpDialect& dialect = {});

}  // namespace optcache::storage::internal
