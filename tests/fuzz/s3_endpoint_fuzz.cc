// Any method, target, host, range and condition at the S3 endpoint: answered within the object,
// with one of its statuses, never more. The input is "METHOD TARGET", then lines of "Name: value".

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "dataset/manifest_builder.h"
#include "sidecar/s3/s3_answer.h"
#include "sidecar/s3/s3_host.h"
#include "sidecar/s3/s3_pages.h"

namespace {

using optcache::sidecar::AnswerS3;
using optcache::sidecar::BucketOfHost;
using optcache::sidecar::KeySpace;
using optcache::sidecar::ParseS3Request;
using optcache::sidecar::S3Answer;

void Check(bool holds) {
  if (!holds) std::abort();
}

const optcache::dataset::Manifest& Objects() {
  static const optcache::dataset::Manifest manifest = [] {
    optcache::dataset::ManifestBuilder builder(optcache::dataset::Order::kList, {});
    for (const char* const path : {"b/two", "a", "b/one", "c+d e&f"})
      CHECK(builder.Add({.path = path, .size = 10}).ok());
    return std::move(builder).Finish().value();
  }();
  return manifest;
}

const KeySpace& Keys() {
  static const KeySpace keys = [] {
    KeySpace made;
    made.Add("data", "eu-test-1", 0, {Objects(), ""});
    made.Add("data", "", 1, {Objects(), "p/"});
    return made;
  }();
  return keys;
}

std::string_view TakeUntil(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string_view line = TakeUntil(text, '\n');
  const std::string_view method = TakeUntil(line, ' ');
  optcache::net::HttpHeaders headers;
  while (!text.empty()) {
    std::string_view header = TakeUntil(text, '\n');
    const std::string name(TakeUntil(header, ':'));
    headers.emplace_back(name, header.starts_with(' ') ? header.substr(1) : header);
  }
  // Most inputs are of path style and have no Host.
  const auto bucket = BucketOfHost(headers);
  const auto request = ParseS3Request(method, line, bucket.value_or(""));
  if (!request) {
    const S3Answer answer = AnswerWithError(request.error());
    Check(answer.status >= 400 && answer.error && !answer.part);
    Check(!ErrorPage(*answer.error, line, "1").empty());
    return 0;
  }
  const S3Answer answer = AnswerS3(*request, headers, Keys());
  Check(answer.status >= 200 && answer.status <= 501);
  Check(answer.error.has_value() == (answer.status >= 400));
  Check(answer.status != 304 || (answer.body.empty() && !answer.part && !answer.length_of_head));
  if (!answer.part) return 0;
  Check(answer.status == 200 || answer.status == 206);
  Check(answer.part->dataset < 2 && answer.part->id < Objects().samples());
  Check(answer.part->bytes.length > 0);
  Check(answer.part->bytes.first + answer.part->bytes.length <= answer.part->size);
  return 0;
}
