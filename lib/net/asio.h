#pragma once

// The one header that includes Boost.Asio; for the .cc files and internal headers of net.

#include <utility>  // Boost 1.74's awaitable.hpp needs it first with g++ 12.

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace optcache::net {

namespace asio = boost::asio;
using boost::system::error_code;
using StreamSocket = asio::generic::stream_protocol::socket;  // TCP or Unix

}  // namespace optcache::net
