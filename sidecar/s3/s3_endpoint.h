#pragma once

// The datasets of a sidecar as a read-only S3 on the loopback, for training that is not changed:
// docs/formats/s3-endpoint.md.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/result.h"
#include "net/event_loop.h"
#include "net/http_server.h"
#include "sampler/pod_order.h"
#include "sidecar/manifests/dataset_registry.h"
#include "sidecar/s3/key_order.h"
#include "sidecar/s3/key_space.h"
#include "sidecar/s3/object_reads.h"
#include "sidecar/s3/s3_answer.h"
#include "sidecar/s3/s3_request.h"

namespace optcache::sidecar {

// By what bucket and prefix clients know a dataset.
struct KeyPlace {
  std::string bucket;
  std::string prefix;  // of all keys; empty, or ends with a slash
  std::string region;  // empty: not known
};
// A bucket's own, or the dataset's name without its namespace. kInvalidArgument: no such address.
Result<KeyPlace> KeyPlaceOf(const DatasetSource& source);

struct S3EndpointOptions {
  std::string address;                                // "127.0.0.1:4104"; empty: no endpoint
  std::map<std::string, sampler::PodOrder> samplers;  // by the dataset's name
  std::uint32_t pod = 0;                              // its number among the job's
};

// "NAME=SAMPLER" into `options`; NAME may leave out the namespace. kInvalidArgument: not that form,
// not one such dataset, or as ParsePodOrder.
Status AddSampler(std::string_view text, const std::vector<DatasetSource>& datasets,
                  S3EndpointOptions& options);

// Requests for what is not there yet wait, within the server's deadline, until all manifests have
// come and their keys are in order. Used on the loop's thread only.
class S3Endpoint {
 public:
  // Listens when this returns. kInvalidArgument: an address that others could reach, or a dataset
  // whose store is this endpoint. All references outlive it.
  static Result<std::unique_ptr<S3Endpoint>> Start(net::EventLoop& loop,
                                                   const std::vector<DatasetSource>& sources,
                                                   ObjectReads& reads, KeyOrder& order,
                                                   S3EndpointOptions options);
  ~S3Endpoint();
  S3Endpoint(const S3Endpoint&) = delete;
  S3Endpoint& operator=(const S3Endpoint&) = delete;

  // The dataset's manifest is there: its keys are put in order on a thread.
  void Serve(const ServedDataset& dataset);

  std::uint16_t port() const { return http_->port(); }
  void VisitCounters(const CounterVisitor& visitor) const;

 private:
  S3Endpoint(net::EventLoop& loop, ObjectReads& reads, KeyOrder& order, S3EndpointOptions options)
      : loop_(loop), reads_(reads), order_(order), options_(std::move(options)) {}
  void AttachOnce(const ServedDataset& dataset);
  void OnKeys(const ServedDataset& dataset, const KeyPlace& place, KeyIndex keys);
  void OnRequest(net::HttpRequest request, const net::HttpResponder& respond);
  bool Answer(const net::HttpRequest& request, const net::HttpResponder& respond);
  void AnswerWithPart(const S3Answer& answer, const std::string& resource,
                      const net::HttpResponder& respond);
  // With a request's id, which is new. `resource` is the path that was asked for.
  net::HttpResponse ResponseOf(S3Answer answer, std::string_view resource);

  net::EventLoop& loop_;
  ObjectReads& reads_;
  KeyOrder& order_;
  S3EndpointOptions options_;               // samplers: of datasets that nobody has read
  std::map<std::string, KeyPlace> places_;  // by the dataset's name; of those that have not come
  std::vector<const ServedDataset*> datasets_;
  KeySpace keys_;
  std::vector<std::pair<net::HttpRequest, net::HttpResponder>> waiting_;
  std::array<std::uint64_t, kS3Operations> requests_{};
  std::uint64_t refused_ = 0;
  // Of a request. Begins with the time: a sidecar that is started again gives other ids.
  std::uint64_t last_id_ = static_cast<std::uint64_t>(SystemClock().UnixSeconds()) << 32U;
  std::shared_ptr<S3Endpoint*> self_;  // shared with what threads post; null inside once it is gone
  std::vector<std::jthread> threads_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace optcache::sidecar
