#include "cache-node/manifest_server.h"

#include <charconv>
#include <optional>
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

constexpr std::string_view kBearer = "Bearer ";

HttpResponse Sentence(int status, std::string_view text) {
  return HttpResponse::Text(status, std::string(text) + "\n");
}

HttpResponse Later(std::string_view text) {
  HttpResponse response = Sentence(503, text);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

HttpResponse Found(const std::string& digest, std::shared_ptr<const std::string> bytes) {
  return {.status = 200,
          .headers = {{"Content-Type", "application/octet-stream"}, {"ETag", '"' + digest + '"'}},
          .body = "",
          .shared_body = std::move(bytes)};
}

// Of a request's Content-Length; nothing if it has none.
std::optional<ByteCount> LengthOf(const HttpRequest& request) {
  const std::string_view text = net::FindHeader(request.headers, "Content-Length").value_or("");
  ByteCount length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return length;
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

std::string TokenOf(const HttpRequest& request) {
  const std::string_view header = net::FindHeader(request.headers, "Authorization").value_or("");
  if (!header.starts_with(kBearer)) return "";
  return std::string(header.substr(kBearer.size()));
}

}  // namespace

void ManifestServer::CheckHead(const HttpRequest& head,
                               std::function<void(net::HttpHeadRuling)> decide) {
  const std::optional<Path> path = ParseManifestPath(head.method, head.path());
  const auto refuse = [decide](HttpResponse response) {
    decide({.refusal = std::move(response), .hold = nullptr});
  };
  if (!path) return refuse(Sentence(404, "there is no such page"));
  if (path->kind != Path::Kind::kPut) return refuse(Sentence(400, "a question needs no body"));
  Authenticate(head, refuse, [this, head, path = *path, decide](const Caller& caller) {
    decide(RuleOnUpload(caller, path, head));
  });
}

net::HttpHeadRuling ManifestServer::RuleOnUpload(const Caller& caller, const Path& path,
                                                 const HttpRequest& head) {
  const auto refuse = [](HttpResponse response) {
    return net::HttpHeadRuling{.refusal = std::move(response), .hold = nullptr};
  };
  if (const Status allowed = MayPut(caller, path); !allowed.ok()) {
    parts_.refusals.Note(Refused::kManifest, NameOf(caller), allowed.message());
    return refuse(Failure(allowed));
  }
  if (parts_.store.Has(path.digest)) return refuse({.status = 201});
  const std::optional<ByteCount> length = LengthOf(head);
  if (!length) return refuse(Sentence(411, "a manifest comes with its Content-Length"));
  ByteCount bytes = *length;
  for (const Upload& other : *uploads_) {
    if (other.name_space == caller.name_space) {
      return refuse(Later(fmt::format("this node is receiving another manifest of namespace {}",
                                      caller.name_space)));
    }
    bytes += other.bytes;
  }
  if (bytes > limits_.upload_bytes) return refuse(Later("this node is receiving other manifests"));
  const auto upload =
      uploads_->insert(uploads_->end(), {.name_space = caller.name_space, .bytes = *length});
  return {.refusal = std::nullopt,
          .hold = std::shared_ptr<void>(
              &*upload, [uploads = uploads_, upload](void*) { uploads->erase(upload); })};
}

void ManifestServer::Handle(HttpRequest request, const HttpResponder& respond) {
  const std::optional<Path> path = ParseManifestPath(request.method, request.path());
  if (!path) return respond(Sentence(404, "there is no such page"));
  if (path->kind == Path::Kind::kByDigest) return GiveByDigest(request, *path, respond);
  // Shared, so that a callback that is copied copies no manifest.
  const auto body = std::make_shared<std::string>(std::move(request.body));
  Authenticate(request, respond, [this, path = *path, respond, body](const Caller& caller) {
    if (path.kind == Path::Kind::kPut) {
      Take(caller, path, std::move(*body), respond);
    } else {
      GiveByDataset(caller, path, respond);
    }
  });
}

void ManifestServer::Authenticate(const HttpRequest& request, const Answer& respond,
                                  std::function<void(const Caller&)> then) {
  auto answer = [this, respond, address = request.peer.address, then = std::move(then)](
                    const Result<Caller>& caller, MonotonicTime) {
    if (caller) return then(*caller);
    const Status& why = caller.error();
    const bool bad = why.code() == Code::kPermissionDenied;
    parts_.refusals.Note(bad ? Refused::kToken : Refused::kReview, address, why.message());
    respond(bad ? Sentence(401, why.message()) : Later(why.message()));
  };
  parts_.tokens.Check(TokenOf(request), request.peer, std::move(answer));
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

// Of the manifests that are being read and sent.
ByteCount ManifestServer::GivenBytes() {
  std::erase_if(given_, [](const auto& one) { return one.second.expired(); });
  ByteCount bytes = 0;
  for (const auto& [digest, _] : given_)
    bytes += parts_.store.BytesOf(digest);
  for (const auto& [digest, _] : reading_)
    bytes += parts_.store.BytesOf(digest);
  return bytes;
}

// Read once for all who ask before it has been sent, and kept in memory once.
void ManifestServer::Give(const std::string& digest, const HttpResponder& respond) {
  if (const auto given = given_.find(digest); given != given_.end()) {
    if (auto bytes = given->second.lock()) return respond(Found(digest, std::move(bytes)));
  }
  const ByteCount others = reading_.contains(digest) ? 0 : GivenBytes();
  if (others > 0 && others + parts_.store.BytesOf(digest) > limits_.given_bytes) {
    return respond(Later("this node is busy with other manifests"));
  }
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
  std::shared_ptr<const std::string> shared;
  if (bytes) {
    shared = std::make_shared<const std::string>(*std::move(bytes));
    given_[digest] = shared;
  }
  for (const HttpResponder& respond : waiting.mapped())
    respond(shared ? Found(digest, shared) : Later("this node has to fetch the manifest again"));
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
