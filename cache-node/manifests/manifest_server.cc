// Serves manifests to nodes and pods, and takes them from index Jobs, without holding one in
// memory.
//
//   PUT: CheckHead (token, namespace, size, room) ─► pieces to the file ─► Take (checked) ─► 201
//   GET by digest: nodes, by certificate     GET by dataset: pods, by token     both ─► Give
//
// An upload reserves its room in the store and has its entry in `uploads_` from its head on until
// its request ends; Settle is called once for each. What has come whole is checked even if its
// client has gone. `given_` is shared by every answer that is being sent, so its use count is their
// number. A file that turns out to be damaged while it is sent is cut off, dropped and fetched
// again.

#include "cache-node/manifests/manifest_server.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/whole_number.h"
#include "cache-node/trust/access.h"
#include "coordination/desired_state.h"
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
    decide(BeginUpload(caller, path, net::ContentLength(head.headers)));
  });
}

// Why a manifest of this many bytes is not taken, or that the node has it; else nothing.
std::optional<HttpResponse> ManifestServer::Ruling(const Caller& caller, const Path& path,
                                                   std::optional<ByteCount> bytes) {
  if (const Status allowed = MayPut(caller, path); !allowed.ok()) return Refuse(caller, allowed);
  if (parts_.store.Has(path.digest)) return HttpResponse{.status = 201};
  if (!bytes) return Sentence(411, "a manifest comes with its Content-Length");
  if (const Status fits = parts_.store.CheckSize(*bytes); !fits.ok()) {
    parts_.refusal_counters.Note(Refused::kManifest, NameOf(caller), fits.message());
    return Sentence(413, fits.message());
  }
  if (std::ranges::find(uploads_, caller.name_space, &Upload::name_space) != uploads_.end()) {
    return Later(
        fmt::format("this node is receiving another manifest of namespace {}", caller.name_space));
  }
  if (uploads_.size() >= limits_.taken) return Later("this node is receiving other manifests");
  return std::nullopt;
}

HttpResponse ManifestServer::Refuse(const Caller& caller, const Status& why) {
  parts_.refusal_counters.Note(Refused::kManifest, NameOf(caller), why.message());
  return Failure(why);
}

net::HttpHeadRuling ManifestServer::BeginUpload(const Caller& caller, const Path& path,
                                                std::optional<ByteCount> bytes) {
  const auto refuse = [](HttpResponse response) {
    return net::HttpHeadRuling{.refusal = std::move(response)};
  };
  if (auto ruling = Ruling(caller, path, bytes)) return refuse(*std::move(ruling));
  const Status reserved = parts_.store.Reserve(path.digest, *bytes, caller.name_space);
  if (!reserved.ok()) return refuse(Refuse(caller, reserved));
  auto writer = ManifestWriter::Open(parts_.store.FileOf(path.digest), *bytes);
  if (!writer) {
    parts_.store.Settle(path.digest, false);
    return refuse(Refuse(caller, writer.error()));
  }
  const auto upload = uploads_.insert(uploads_.end(), {.name_space = caller.name_space,
                                                       .who = NameOf(caller),
                                                       .digest = path.digest,
                                                       .writer = *writer});
  return net::HttpHeadRuling{
      .refusal = std::nullopt,
      .hold = std::shared_ptr<void>(&*upload,
                                    guard_.Wrap([this, upload](void*) { EndUpload(upload); })),
      .sink = *std::move(writer)};
}

// It has been answered, or its client has gone. What has come whole is checked all the same.
void ManifestServer::EndUpload(Uploads::iterator upload) {
  if (!upload->checking) parts_.store.Settle(upload->digest, false);
  uploads_.erase(upload);
}

void ManifestServer::Handle(HttpRequest request, const HttpResponder& respond) {
  const std::optional<Path> path = ParseManifestPath(request.method, request.path());
  if (!path) return respond(Sentence(404, "there is no such page"));
  if (path->kind == Path::Kind::kByDigest) return GiveByDigest(request, *path, respond);
  if (path->kind == Path::Kind::kPut) return Take(request, *path, respond);
  const std::optional<ByteCount> offered =
      ParseWholeNumber<ByteCount>(request.query("bytes").value_or(""));
  Authenticate(request, respond, [this, path = *path, offered, respond](const Caller& caller) {
    if (path.kind == Path::Kind::kByDataset) return GiveByDataset(caller, path, respond);
    respond(Ruling(caller, path, offered).value_or(HttpResponse{.status = 202}));
  });
}

void ManifestServer::Authenticate(const HttpRequest& request, const Answer& respond,
                                  std::function<void(const Caller&)> then) {
  auto answer = [this, respond, address = request.peer.address, then = std::move(then)](
                    const Result<Caller>& caller, MonotonicTime) {
    if (caller) return then(*caller);
    const Status& why = caller.error();
    const bool bad = why.code() == Code::kPermissionDenied;
    parts_.refusal_counters.Note(bad ? Refused::kToken : Refused::kReview, address, why.message());
    respond(bad ? Sentence(401, why.message()) : Later(why.message()));
  };
  parts_.tokens.Check(TokenOf(request), request.peer, std::move(answer));
}

void ManifestServer::GiveByDigest(const HttpRequest& request, const Path& path,
                                  const HttpResponder& respond) {
  if (!request.peer.Is(net::kNodeServerName)) {
    constexpr std::string_view kWhy = "only nodes, by their certificate, ask by digest";
    parts_.refusal_counters.Note(Refused::kCertificate, request.peer.address, kWhy);
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
  const coordination::DatasetState* dataset = coordination::FindDataset(*state, path.dataset);
  if (dataset == nullptr) {
    return respond(Sentence(404, fmt::format("there is no Dataset {} that is indexed; kubectl get "
                                             "datasets -n {} says more",
                                             path.dataset, path.name_space)));
  }
  if (const Status allowed = MayUse(caller, *dataset); !allowed.ok()) {
    parts_.refusal_counters.Note(Refused::kNamespace, NameOf(caller), allowed.message());
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

// Read from its file as fast as it is taken, its digest computed on the way.
void ManifestServer::Give(const std::string& digest, const HttpResponder& respond) {
  if (std::cmp_greater_equal(given_.use_count() - 1, limits_.given)) {
    return respond(Later("this node is busy with other manifests"));
  }
  auto reader = ManifestReader::Open(
      parts_.store.FileOf(digest), digest,
      [&loop = parts_.loop, tell = guard_.Wrap([this, digest](const Status& why) {
        OnDamage(digest, why);
      })](const Status& why) { loop.Post([tell = tell, why]() mutable { tell(why); }); });
  if (!reader) {
    OnDamage(digest, reader.error());
    return respond(Later("this node has to fetch the manifest again"));
  }
  // With what counts it as being sent.
  const auto source =
      std::make_shared<std::pair<std::shared_ptr<ManifestReader>, std::shared_ptr<char>>>(*reader,
                                                                                          given_);
  respond({.status = 200,
           .headers = {{"Content-Type", "application/octet-stream"}, {"ETag", '"' + digest + '"'}},
           .body = "",
           .source = std::shared_ptr<net::HttpBodySource>(source, source->first.get())});
}

void ManifestServer::OnDamage(const std::string& digest, const Status& why) {
  if (!parts_.store.Has(digest)) return;  // Others noticed, too.
  Log(LogLevel::kError, "a manifest on the state volume is damaged, fetching it again",
      {{"digest", digest}, {"why", why.message()}});
  parts_.store.Drop(digest);
  parts_.fetch(digest);
}

Status ManifestServer::MayPut(const Caller& caller, const Path& path) {
  if (caller.name_space == path.name_space) return OkStatus();
  return {Code::kPermissionDenied,
          fmt::format("the token is of namespace {}; manifests of {} are taken from namespace {} "
                      "alone",
                      caller.name_space, path.dataset, path.name_space)};
}

// Its head has been ruled on, or it has no body.
void ManifestServer::Take(const HttpRequest& request, const Path& path,
                          const HttpResponder& respond) {
  const auto upload = std::ranges::find_if(uploads_, [&](const Upload& one) {
    return request.sink != nullptr && one.writer == request.sink;
  });
  if (upload == uploads_.end()) return respond(Sentence(400, "a manifest is not empty"));
  upload->checking = true;
  const auto finish = [this, path, who = upload->who, respond](const Status& kept) {
    parts_.store.Settle(path.digest, kept.ok());
    if (!kept.ok()) {
      parts_.refusal_counters.Note(Refused::kManifest, who, kept.message());
      return respond(Failure(kept));
    }
    Log(LogLevel::kInfo, "manifest taken",
        {{"dataset", path.dataset}, {"digest", path.digest}, {"from", who}});
    parts_.on_stored(path.digest);
    respond({.status = 201});
  };
  const auto kept = std::make_shared<Status>();
  const Status begun = parts_.worker.Run(
      [kept, writer = upload->writer, digest = path.digest,
       samples = parts_.store.limits().samples] { *kept = writer->Keep(digest, samples); },
      [kept, finish] { finish(*kept); });
  if (!begun.ok()) finish(begun);
}

}  // namespace optcache::node
