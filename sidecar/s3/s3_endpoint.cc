// Answers requests of S3 from the keys of the datasets, and reads the bytes through the core.
//
//   Serve ─► a thread makes the KeyIndex ─► OnKeys ─► keys_, and waiting_ is answered again
//   OnRequest ─► Answer ─► AnswerS3 (pure) ─┬─► a page, an error, a head
//                                           └─► AnswerWithPart ─► ObjectReads ─► BufferPart
//
// `places_` has the datasets whose keys are not in order yet. While there are any, a listing and
// "no such key" cannot be answered truly, so those requests wait in `waiting_`; the server's
// deadline bounds that. What threads and reads post goes through `self_`, which is null once the
// endpoint is gone. BufferPart sends from the sample's own memory, a piece at a time.

#include "sidecar/s3/s3_endpoint.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/log.h"
#include "net/address.h"
#include "sidecar/s3/s3_host.h"
#include "sidecar/s3/s3_pages.h"
#include "storage/open_store.h"
#include "storage/s3_address.h"

namespace optcache::sidecar {
namespace {

// Each that is sent to takes two pieces of memory: 32 MiB in all.
constexpr std::size_t kConnectionsMax = 256;
constexpr std::size_t kPieceBytes = 64U << 10U;
constexpr std::uint32_t kHeadBytesMax = 32U
                                        << 10U;  // a key of 4,096 bytes, encoded, and a signature
// Any body is refused with a sentence, not a 413.
constexpr ByteCount kBodyBytesMax = std::numeric_limits<ByteCount>::max();
constexpr Duration kAnswerMax = std::chrono::seconds(60);
// A client trains while it reads: between two reads of one answer it may evaluate a model or save a
// checkpoint. What it holds meanwhile is its own pod's, and has a limit.
constexpr Duration kStallMax = std::chrono::minutes(15);

// A part of a sample's memory, which it keeps until it is sent.
class BufferPart final : public net::HttpBodySource {
 public:
  BufferPart(BufferRef buffer, const ByteRange& part)
      : buffer_(std::move(buffer)), left_(buffer_->bytes().subspan(part.first, part.length)) {}
  ByteCount size() const override { return left_.size(); }
  Result<std::string> Read(std::size_t most) override {
    const ByteSpan piece = left_.first(std::min({most, kPieceBytes, left_.size()}));
    left_ = left_.subspan(piece.size());
    return std::string(reinterpret_cast<const char*>(piece.data()), piece.size());
  }

 private:
  BufferRef buffer_;
  ByteSpan left_;
};

// Says how long a body would be, where none is sent.
class OnlyLength final : public net::HttpBodySource {
 public:
  explicit OnlyLength(ByteCount length) : length_(length) {}
  ByteCount size() const override { return length_; }
  Result<std::string> Read(std::size_t /*most*/) override {
    return Error(Code::kInternal, "the answer to HEAD has no body");
  }

 private:
  ByteCount length_;
};

std::expected<S3Request, S3Error> RequestIn(const net::HttpRequest& request) {
  auto bucket = BucketOfHost(request.headers);
  if (!bucket) return std::unexpected(std::move(bucket).error());
  return ParseS3Request(request.method, request.url, *std::move(bucket));
}

S3Error WhyNoBody(const net::HttpRequest& head) {
  const auto request = RequestIn(head);
  return request ? S3Error{.status = 400, .code = "InvalidRequest", .message = "GET has no body"}
                 : request.error();
}

bool IsLoopback(const std::string& host) {
  const bool number = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (number && host.starts_with("127."));
}

// http://HOST:PORT of one is the other.
bool IsItself(const std::string& endpoint, const net::Address& own) {
  const std::string_view scheme = "http://";
  if (!endpoint.starts_with(scheme)) return false;
  const std::string_view rest = std::string_view(endpoint).substr(scheme.size());
  const Result<net::Address> other = net::ParseAddress(rest.substr(0, rest.find('/')));
  return other && other->port == own.port && (other->host == own.host || IsLoopback(other->host));
}

Status CheckAddress(const std::string& text) {
  ASSIGN_OR_RETURN(const net::Address address, net::ParseAddress(text));
  if (!address.is_unix() && IsLoopback(address.host)) return OkStatus();
  return {Code::kInvalidArgument,
          "--s3 " + text +
              ": signatures are not checked there, so it may listen on the loopback alone; write "
              "127.0.0.1:PORT"};
}

// As the store reads it.
Result<storage::S3Address> BucketOf(const DatasetSource& source) {
  return storage::BucketAt(source.store_uri, OpenOptionsOf(source));
}

// Of the server that has it; empty if none is named that could be reached.
std::string EndpointOf(const DatasetSource& source) {
  if (!source.store_uri.starts_with(storage::kS3Scheme)) return source.store_uri;
  const auto address = BucketOf(source);
  return address ? address->endpoint : "";
}

}  // namespace

Result<KeyPlace> KeyPlaceOf(const DatasetSource& source) {
  if (!source.store_uri.starts_with(storage::kS3Scheme))
    return KeyPlace{.bucket = source.name.substr(source.name.find('/') + 1)};
  ASSIGN_OR_RETURN(const storage::S3Address address, BucketOf(source));
  return KeyPlace{.bucket = address.bucket, .prefix = address.prefix, .region = address.region};
}

Status AddSampler(std::string_view text, const std::vector<DatasetSource>& datasets,
                  S3EndpointOptions& options) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = text.substr(0, equals);
  const auto is_meant = [name](const DatasetSource& source) {
    return source.name == name || source.name.substr(source.name.find('/') + 1) == name;
  };
  const auto dataset = std::ranges::find_if(datasets, is_meant);
  if (std::ranges::count_if(datasets, is_meant) != 1) {
    return {Code::kInvalidArgument, "--sampler '" + std::string(text) +
                                        "' is not NAME=SAMPLER, with the NAME of one --dataset"};
  }
  ASSIGN_OR_RETURN(options.samplers[dataset->name],
                   sampler::ParsePodOrder(text.substr(std::min(equals + 1, text.size()))));
  return OkStatus();
}

Result<std::unique_ptr<S3Endpoint>> S3Endpoint::Start(net::EventLoop& loop,
                                                      const std::vector<DatasetSource>& sources,
                                                      ObjectReads& reads, KeyOrder& order,
                                                      S3EndpointOptions options) {
  RETURN_IF_ERROR(CheckAddress(options.address));
  std::unique_ptr<S3Endpoint> endpoint(new S3Endpoint(loop, reads, order, std::move(options)));
  S3Endpoint* const self = endpoint.get();
  self->self_ = std::make_shared<S3Endpoint*>(self);
  const std::string& address = self->options_.address;
  ASSIGN_OR_RETURN(const net::Address own, net::ParseAddress(address));
  for (const DatasetSource& source : sources) {
    if (IsItself(EndpointOf(source), own)) {
      return Error(Code::kInvalidArgument,
                   fmt::format("the store of dataset '{}' is this endpoint itself, {}: give its "
                               "source an endpoint of its own, or unset AWS_ENDPOINT_URL_S3 here",
                               source.name, address));
    }
    ASSIGN_OR_RETURN(self->places_[source.name], KeyPlaceOf(source));
  }
  ASSIGN_OR_RETURN(
      self->http_,
      net::ListenHttp(loop, address,
                      {.label = "s3",
                       .max_header_bytes = kHeadBytesMax,
                       .max_body_bytes = kBodyBytesMax,
                       .max_body_bytes_unproven = {},
                       // Who writes is answered before the body is read.
                       .check_head =
                           [self](const net::HttpRequest& head, const auto& decide) {
                             ++self->refused_;
                             decide({.refusal = self->ResponseOf(AnswerWithError(WhyNoBody(head)),
                                                                 head.path())});
                           },
                       .max_connections = kConnectionsMax,
                       .stall_deadline = kStallMax,
                       .response_deadline = kAnswerMax,
                       .own_answer =
                           [self](int status, std::string why) {
                             return self->ResponseOf(
                                 AnswerWithError(ErrorOfServer(status, std::move(why))), "/");
                           }},
                      [self](net::HttpRequest request, const net::HttpResponder& respond) {
                        self->OnRequest(std::move(request), respond);
                      }));
  Log(LogLevel::kInfo, "serving datasets by S3",
      {{"export", fmt::format("AWS_ENDPOINT_URL_S3=http://127.0.0.1:{}", self->port())}});
  return endpoint;
}

S3Endpoint::~S3Endpoint() {
  *self_ = nullptr;
  http_.reset();
  waiting_.clear();
}

void S3Endpoint::Serve(const ServedDataset& dataset) {
  const auto place = places_.find(dataset.name());
  // The manifest lives as long as the sidecar, and nothing changes it.
  threads_.emplace_back([&loop = loop_, &dataset, place = place->second, self = self_] {
    const auto keys = std::make_shared<KeyIndex>(dataset.manifest(), place.prefix);
    loop.Post([self, &dataset, place, keys] {
      if (*self != nullptr) (*self)->OnKeys(dataset, place, std::move(*keys));
    });
  });
}

// With the first read, and not before: what is staged while the node is not there yet comes from
// the store, and is not kept.
void S3Endpoint::AttachOnce(const ServedDataset& dataset) {
  const auto order = options_.samplers.extract(dataset.name());
  if (order.empty()) return;
  const auto ranks = sampler::RanksOf(order.mapped(), options_.pod, dataset.samples());
  const Status attached = ranks ? order_.Attach(dataset, *ranks) : ranks.error();
  if (attached.ok()) return;
  Log(LogLevel::kWarning, "order not known here, samples are read as they are asked for",
      {{"dataset", dataset.name()}, {"reason", attached.message()}});
}

void S3Endpoint::OnKeys(const ServedDataset& dataset, const KeyPlace& place, KeyIndex keys) {
  places_.erase(dataset.name());
  keys_.Add(place.bucket, place.region, datasets_.size(), std::move(keys));
  datasets_.push_back(&dataset);
  auto waiting = std::exchange(waiting_, {});
  for (auto& [request, respond] : waiting) {
    if (!respond.abandoned() && !Answer(request, respond))
      waiting_.emplace_back(std::move(request), respond);
  }
}

void S3Endpoint::OnRequest(net::HttpRequest request, const net::HttpResponder& respond) {
  const auto parsed = RequestIn(request);
  if (!parsed) {
    ++refused_;
    return respond(ResponseOf(AnswerWithError(parsed.error()), request.path()));
  }
  ++requests_.at(static_cast<std::size_t>(parsed->operation));
  if (Answer(request, respond)) return;
  std::erase_if(waiting_, [](const auto& waiting) { return waiting.second.abandoned(); });
  waiting_.emplace_back(std::move(request), respond);
}

// False: it cannot be said yet, as a dataset is still to come.
bool S3Endpoint::Answer(const net::HttpRequest& request, const net::HttpResponder& respond) {
  const auto parsed = RequestIn(request);
  const bool of_an_object = !parsed->key.empty();
  if (!places_.empty() && !of_an_object) return false;
  S3Answer answer = AnswerS3(*parsed, request.headers, keys_);
  if (!places_.empty() && answer.status == 404) return false;
  if (answer.part) {
    AnswerWithPart(answer, std::string(request.path()), respond);
  } else {
    respond(ResponseOf(std::move(answer), request.path()));
  }
  return true;
}

net::HttpResponse S3Endpoint::ResponseOf(S3Answer answer, std::string_view resource) {
  const std::string id = fmt::format("{:016X}", ++last_id_);
  net::HttpResponse response{.status = answer.status,
                             .headers = std::move(answer.headers),
                             .body = std::move(answer.body)};
  response.headers.emplace_back("x-amz-request-id", id);
  if (answer.error) response.body = ErrorPage(*answer.error, resource, id);
  if (answer.length_of_head) response.source = std::make_shared<OnlyLength>(*answer.length_of_head);
  return response;
}

void S3Endpoint::AnswerWithPart(const S3Answer& answer, const std::string& resource,
                                const net::HttpResponder& respond) {
  const ObjectPart part = *answer.part;
  const auto done = [self = self_, respond, resource, answer](Result<BufferRef> buffer) {
    if (*self == nullptr) return;
    if (!buffer) {
      return respond((*self)->ResponseOf(AnswerWithError(ErrorOfRead(buffer.error())), resource));
    }
    net::HttpResponse response = (*self)->ResponseOf(answer, resource);
    response.source = std::make_shared<BufferPart>(*buffer, answer.part->bytes);
    respond(std::move(response));
  };
  const ServedDataset& dataset = *datasets_.at(part.dataset);
  AttachOnce(dataset);
  reads_.Read(dataset, part.id, part.bytes, done);
}

void S3Endpoint::VisitCounters(const CounterVisitor& visitor) const {
  for (std::size_t i = 0; i < kS3Operations; ++i) {
    visitor(MetricKind::kCounter, "optcache_s3_requests_total",
            {{"operation", std::string(S3OperationName(static_cast<S3Operation>(i)))}},
            static_cast<double>(requests_.at(i)));
  }
  visitor(MetricKind::kCounter, "optcache_s3_requests_total", {{"operation", "refused"}},
          static_cast<double>(refused_));
  visitor(MetricKind::kCounter, "optcache_s3_joined_reads_total", {},
          static_cast<double>(reads_.joined()));
  http_->VisitCounters(visitor);
}

}  // namespace optcache::sidecar
