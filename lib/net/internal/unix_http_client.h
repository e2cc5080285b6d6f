#pragma once

#include <memory>

#include "net/http_client.h"

namespace optcache::net {

// The client for HttpClientOptions::unix_socket. Each request has a connection of its own.
std::unique_ptr<HttpClient> MakeUnixHttpClient(EventLoop& loop, HttpClientOptions options);

}  // namespace optcache::net
