#pragma once

// By which names a client may call the endpoint. A web page can lead its own name to the loopback
// (DNS rebinding), and a browser then lets it read what is answered there. Such a request carries
// the page's name as its Host, so the endpoint answers to names of the loopback alone. Pure.

#include <expected>
#include <string>

#include "net/http.h"
#include "sidecar/s3/s3_request.h"

namespace optcache::sidecar {

// The bucket that Host names, as virtual-hosted style has it ("images.localhost:4104"). Empty, for
// path style: it is localhost, of 127.0.0.0/8, or [::1]. Each may have a port, of any number: the
// client may reach the endpoint through a forwarded one. What a browser asks for on behalf of
// another site's page, an image in it for example, is refused by whatever name.
std::expected<std::string, S3Error> BucketOfHost(const net::HttpHeaders& headers);

}  // namespace optcache::sidecar
