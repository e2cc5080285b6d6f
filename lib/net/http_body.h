#pragma once

// Bodies that do not lie in memory as a whole. Each is used by one request, by one thread at a
// time, which need not be the loop's: they may block on a disk.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "base/status.h"

namespace optcache::net {

// Where a body goes that is received.
class HttpBodySink {
 public:
  virtual ~HttpBodySink() = default;
  HttpBodySink(const HttpBodySink&) = delete;
  HttpBodySink& operator=(const HttpBodySink&) = delete;

  // The next bytes. An error ends the request.
  virtual Status Write(std::string_view bytes) = 0;

 protected:
  HttpBodySink() = default;
};

// Where a body comes from that is sent.
class HttpBodySource {
 public:
  virtual ~HttpBodySource() = default;
  HttpBodySource(const HttpBodySource&) = delete;
  HttpBodySource& operator=(const HttpBodySource&) = delete;

  virtual ByteCount size() const = 0;
  // The next bytes, at least one and at most `most`; called until size() have come. An error ends
  // the connection, so that the receiver does not take what it has for the whole.
  virtual Result<std::string> Read(std::size_t most) = 0;

 protected:
  HttpBodySource() = default;
};

}  // namespace optcache::net
