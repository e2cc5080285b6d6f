#pragma once

// What a client of S3 is answered: a page of XML, an error, or a part of an object. Pure.

#include <optional>
#include <string>

#include "base/status.h"
#include "net/http.h"
#include "sidecar/s3/byte_range.h"
#include "sidecar/s3/key_space.h"
#include "sidecar/s3/s3_request.h"

namespace optcache::sidecar {

// The body of an answer that is still to be read. A value.
struct ObjectPart {
  std::size_t dataset = 0;  // as KeySpace::Add was told
  SampleId id = 0;
  ByteRange bytes;
  ByteCount size = 0;  // of the object
};

struct S3Answer {
  int status = 200;
  net::HttpHeaders headers;
  std::string body;
  // Instead of `body`:
  std::optional<S3Error> error;
  std::optional<ObjectPart> part;
  std::optional<ByteCount> length_of_head;  // HEAD of an object: what GET would send
};

// What a read that has failed is for a client. These ask again after 500 and 503 alone.
S3Error ErrorOfRead(const Status& status);

// What the server answers by itself, with that status: no request, or one that takes too long.
S3Error ErrorOfServer(int status, std::string why);

S3Answer AnswerWithError(S3Error error);

// The request's whole answer; `headers` are its own: ranges and conditions. Objects that no dataset
// has are NoSuchKey, archives whose members are samples NotImplemented.
S3Answer AnswerS3(const S3Request& request, const net::HttpHeaders& headers, const KeySpace& keys);

}  // namespace optcache::sidecar
