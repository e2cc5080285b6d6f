#pragma once

// Requests of the API as HTTP: methods, paths, queries and media types.

#include <string>
#include <string_view>

#include "kube/client.h"
#include "net/http.h"

namespace optcache::kube {

std::string_view HttpMethod(Verb verb);
// As the API names it: "get", "patch".
std::string_view VerbName(Verb verb);

// "get pods vision/train-0", "watch nodes": for messages.
std::string Describe(const ApiRequest& request);
std::string Describe(const WatchRequest& request);

net::HttpRequest ToHttp(const std::string& server, const ApiRequest& request,
                        net::HttpHeaders headers);
net::HttpRequest ToHttp(const std::string& server, const WatchRequest& request,
                        net::HttpHeaders headers);

}  // namespace optcache::kube
