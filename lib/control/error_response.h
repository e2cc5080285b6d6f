#pragma once

// Errors as the control API answers them.

#include "base/status.h"
#include "net/http.h"

namespace optcache::control {

// {"error": "not_found: no base of this digest"}, with the HTTP status of the code.
net::HttpResponse ErrorResponse(const Status& status);

}  // namespace optcache::control
