#include "cache-node/manifest_server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "cache-node/access.h"
#include "net/connection.h"

namespace optcache::node {
namespace {

using net::HttpRequest;
using net::HttpResponder;
using net::HttpResponse;

constexpr std::size_t kNameMax = 253;  // of a Kubernetes object
constexpr std::string_view kBearer = "Bearer ";

HttpResponse Sentence(int status, std::string_view text) {
  return HttpResponse::Text(status, std::string(text) + "\n");
}

HttpResponse Later(std::string_view text) {
  HttpResponse response = Sentence(503, text);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse Found(const std::string& digest, std::string bytes) {
  return {.status = 200,
          .headers = {{"Content-Type", "application/octet-stream"}, {"ETag", '"' + digest + '"'}},
          .body = std::move(bytes)};
}

// What a failure of ours looks like to a client.
HttpResponse Failure(const Status& status) {
  switch (status.code()) {
    case Code::kInvalidArgument:
      return Sentence(400, status.message());
    case Code::kPermissionDenied:
      return Sentence(403, status.message());
    default:
      return Later(status.message());
  }
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kNameMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> parts;
  while (path.starts_with('/') && parts.size() < 8) {
    path.remove_prefix(1);
    parts.push_back(path.substr(0, path.find('/')));
    path.remove_prefix(parts.back().size());
  }
  return parts;
}

std::string TokenOf(const HttpRequest& request) {
  const std::string_view header = net::FindHeader(request.headers, "Authorization").value_or("");
  if (!header.starts_with(kBearer)) return "";
  return std::string(header.substr(kBearer.size()));
}

}  // namespace

std::optional<ManifestServer::Path> ManifestServer::ParsePath(const HttpRequest& request) {
  const std::vector<std::string_view> parts = Split(request.path());
  const bool get = request.method == "GET";
  if (get && parts.size() == 3 && parts[0] == "v1" && parts[1] == "manifests") {
    if (!IsDigest(parts[2])) return std::nullopt;
    return Path{.kind = Path::Kind::kByDigest, .digest = std::string(parts[2])};
  }
  const bool of_dataset = parts.size() >= 5 && parts[0] == "v1" && parts[1] == "datasets" &&
                          IsName(parts[2]) && IsName(parts[3]);
  if (!of_dataset) return std::nullopt;
  Path path{.kind = Path::Kind::kByDataset,
            .name_space = std::string(parts[2]),
            .dataset = fmt::format("{}/{}", parts[2], parts[3])};
  if (get && parts.size() == 5 && parts[4] == "manifest") return path;
  const bool put = request.method == "PUT" && parts.size() == 6 && parts[4] == "manifests";
  if (!put || !IsDigest(parts[5])) return std::nullopt;
  path.kind = Path::Kind::kPut;
  path.digest = parts[5];
  return path;
}

void ManifestServer::Handle(const HttpRequest& request, const HttpResponder& respond) {
  const std::optional<Path> path = ParsePath(request);
  if (!path) return respond(Sentence(404, "there is no such page"));
  if (path->kind == Path::Kind::kByDigest) return GiveByDigest(request, *path, respond);
  Authenticate(request, respond,
               [this, path = *path, respond, body = request.body](const Caller& caller) mutable {
                 if (path.kind == Path::Kind::kPut) {
                   Take(caller, path, std::move(body), respond);
                 } else {
                   GiveByDataset(caller, path, respond);
                 }
               });
}

void ManifestServer::Authenticate(const HttpRequest& request, const HttpResponder& respond,
                                  std::function<void(const Caller&)> then) {
  parts_.tokens.Check(TokenOf(request), [this, respond, address = request.peer.address,
                                         then = std::move(then)](const Result<Caller>& caller) {
    if (caller) return then(*caller);
    const Status& why = caller.error();
    const bool bad = why.code() == Code::kPermissionDenied;
    parts_.refusals.Note(bad ? Refused::kToken : Refused::kReview, address, why.message());
    respond(bad ? Sentence(401, why.message()) : Later(why.message()));
  });
}

void ManifestServer::GiveByDigest(const HttpRequest& request, const Path& path,
                                  const HttpResponder& respond) {
  if (!request.peer.Is(net::kNodeServerName)) {
    constexpr std::string_view kWhy = "only nodes, by their certificate, ask by digest";
    parts_.refusals.Note(Refused::kCertificate, request.peer.address, kWhy);
    return respond(Sentence(403, kWhy));
  }
  if (!parts_.store.Has(path.digest)) {
    return respond(Sentence(404, "this node does not hold that manifest"));
  }
  Give(path.digest, respond);
}

void ManifestServer::GiveByDataset(const Caller& caller, const Path& path,
                                   const HttpResponder& respond) {
  const coordination::DesiredState* state = parts_.state();
  if (state == nullptr) return respond(Later("this node waits for the operator"));
  const coordination::DatasetState* dataset = FindDataset(*state, path.dataset);
  if (dataset == nullptr) {
    return respond(Sentence(404, fmt::format("there is no Dataset {} that is indexed; kubectl get "
                                             "datasets -n {} says more",
                                             path.dataset, path.name_space)));
  }
  if (const Status allowed = MayUse(caller, *dataset); !allowed.ok()) {
    parts_.refusals.Note(Refused::kNamespace, NameOf(caller), allowed.message());
    return respond(Failure(allowed));
  }
  if (dataset->manifest_digest.empty()) {
    return respond(Later(fmt::format("Dataset {} is being indexed", path.dataset)));
  }
  parts_.on_used(dataset->name);
  if (!parts_.store.Has(dataset->manifest_digest)) {
    parts_.fetch(dataset->manifest_digest);
    return respond(Later(fmt::format("this node is fetching the manifest of {}", path.dataset)));
  }
  Give(dataset->manifest_digest, respond);
}

// Read once for all who ask at the same time.
void ManifestServer::Give(const std::string& digest, const HttpResponder& respond) {
  std::vector<HttpResponder>& waiting = reading_[digest];
  waiting.push_back(respond);
  if (waiting.size() > 1) return;
  const auto bytes = std::make_shared<Result<std::string>>(Error(Code::kInternal, "not read"));
  const Status begun = parts_.worker.Run(
      [bytes, digest, file = parts_.store.FileOf(digest),
       limit = parts_.store.limits().manifest_bytes] {
        *bytes = ReadManifest(file, digest, limit);
      },
      [this, bytes, digest] { OnRead(digest, std::move(*bytes)); });
  if (!begun.ok()) OnRead(digest, Error(begun));
}

void ManifestServer::OnRead(const std::string& digest, Result<std::string> bytes) {
  const auto waiting = reading_.extract(digest);
  if (!bytes && bytes.error().code() != Code::kResourceExhausted) {
    Log(LogLevel::kError, "a manifest on the state volume is damaged, fetching it again",
        {{"digest", digest}, {"why", bytes.error().message()}});
    parts_.store.Drop(digest);
    parts_.fetch(digest);
  }
  for (const HttpResponder& respond : waiting.mapped()) {
    respond(bytes ? Found(digest, *bytes) : Later("this node has to fetch the manifest again"));
  }
}

Status ManifestServer::MayPut(const Caller& caller, const Path& path) {
  if (caller.name_space == path.name_space) return OkStatus();
  return {Code::kPermissionDenied,
          fmt::format("the token is of namespace {}; manifests of {} are taken from namespace {} "
                      "alone",
                      caller.name_space, path.dataset, path.name_space)};
}

void ManifestServer::Take(const Caller& caller, const Path& path, std::string bytes,
                          const HttpResponder& respond) {
  const auto refuse = [this, who = NameOf(caller), respond](const Status& why) {
    parts_.refusals.Note(Refused::kManifest, who, why.message());
    respond(Failure(why));
  };
  if (const Status allowed = MayPut(caller, path); !allowed.ok()) return refuse(allowed);
  if (parts_.store.Has(path.digest)) return respond({.status = 201});
  if (bytes.size() > parts_.store.limits().manifest_bytes) {
    return respond(
        Sentence(413, fmt::format("the manifest has {}, a node takes {}", FormatBytes(bytes.size()),
                                  FormatBytes(parts_.store.limits().manifest_bytes))));
  }
  const Status reserved = parts_.store.Reserve(path.digest, bytes.size(), caller.name_space);
  if (!reserved.ok()) return refuse(reserved);
  const auto written = std::make_shared<Status>();
  const Status begun = parts_.worker.Run(
      [written, file = parts_.store.FileOf(path.digest), digest = path.digest,
       bytes = std::move(bytes)]() mutable {
        *written = WriteManifest(file, digest, std::move(bytes));
      },
      [this, written, path, refuse, respond, who = NameOf(caller)] {
        parts_.store.Settle(path.digest, written->ok());
        if (!written->ok()) return refuse(*written);
        Log(LogLevel::kInfo, "manifest taken",
            {{"dataset", path.dataset}, {"digest", path.digest}, {"from", who}});
        parts_.on_stored(path.digest);
        respond({.status = 201});
      });
  if (begun.ok()) return;
  parts_.store.Settle(path.digest, false);
  refuse(begun);
}

}  // namespace optcache::node
