#include "support/handoff_server.h"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <variant>

#include "base/files.h"
#include "dataset/manifest_builder.h"
#include "dataset/numbering.h"
#include "handoff/memory_file.h"
#include "sampler/order_crc.h"

namespace optcache {
namespace {

using handoff::ClientId;

constexpr StreamId kStream = 77;
constexpr char kPoison = '\xdd';

std::int64_t ModifiedNs(const std::filesystem::path& path) {
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(path));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(written.time_since_epoch()).count();
}

Result<dataset::Manifest> ManifestOf(const std::string& folder) {
  const std::filesystem::path root(folder);
  std::vector<std::string> paths;
  std::vector<std::string> top_folders;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string path = entry.path().lexically_relative(root).string();
    if (entry.is_regular_file()) paths.push_back(path);
    if (entry.is_directory() && path.find('/') == std::string::npos) top_folders.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  const std::vector<std::string_view> views(paths.begin(), paths.end());
  ASSIGN_OR_RETURN(const dataset::Numbering numbering,
                   dataset::NumberSamples(views, top_folders, {}));
  dataset::ManifestBuilder builder(numbering.order, numbering.classes);
  for (std::size_t i = 0; i < numbering.objects.size(); ++i) {
    const std::string& path = paths[numbering.objects[i]];
    const auto kind = numbering.class_of.empty() ? dataset::kNoClass : numbering.class_of[i];
    RETURN_IF_ERROR(builder.Add({.path = path,
                                 .size = std::filesystem::file_size(root / path),
                                 .class_index = kind,
                                 .validator = {.modified_ns = ModifiedNs(root / path), .etag = {}},
                                 .digest = {}}));
  }
  return std::move(builder).Finish();
}

// Of a JSON object, after others.
std::string Field(std::string_view name, std::string_view value) {
  std::string field = ", \"";
  field.append(name).append("\": \"").append(value).append("\"");
  return field;
}
std::string Field(std::string_view name, std::integral auto value) {
  std::string field = ", \"";
  field.append(name).append("\": ").append(std::to_string(+value));
  return field;
}

}  // namespace

Result<std::unique_ptr<HandoffServer>> HandoffServer::Make(HandoffServerOptions options,
                                                           handoff::Arena arena,
                                                           const Clock& clock) {
  ASSIGN_OR_RETURN(dataset::Manifest manifest, ManifestOf(options.folder));
  ASSIGN_OR_RETURN(UniqueFd file, handoff::MakeSealedCopy("manifest", AsBytes(manifest.bytes())));
  std::unique_ptr<HandoffServer> server(new HandoffServer(
      std::move(options), std::move(arena), std::move(manifest), std::move(file), clock));
  if (server->options_.stage) RETURN_IF_ERROR(server->Stage());
  return server;
}

Status HandoffServer::Stage() {
  Batch kept;
  for (SampleId id = 0; id < manifest_.samples(); ++id) {
    Read(id, kept);
  }
  if (kept.size() < manifest_.samples()) {
    return {Code::kResourceExhausted, "the arena is too small to stage all samples"};
  }
  staged_ = std::move(kept);
  return OkStatus();
}

HandoffServer::HandoffServer(HandoffServerOptions options, handoff::Arena arena,
                             dataset::Manifest manifest, UniqueFd manifest_file, const Clock& clock)
    : options_(std::move(options)),
      arena_(std::move(arena)),
      manifest_(std::move(manifest)),
      manifest_file_(std::move(manifest_file)),
      clock_(clock),
      started_at_(clock.Now()) {}

HandoffServer::~HandoffServer() = default;

Result<handoff::OpenReply> HandoffServer::OnOpen(ClientId /*client*/,
                                                 const handoff::OpenRequest& request) {
  Report("open", Field("name", request.name));
  const bool by_short_name = request.name == "short";
  if (!request.name.empty() && request.name != "test" && request.name != "local/test" &&
      !by_short_name) {
    return Error(Code::kNotFound, "there is no dataset " + request.name + " here, only local/test");
  }
  if (clock_.Now() - started_at_ < options_.open_delay) {
    return Error(Code::kUnavailable, "the dataset local/test is not indexed yet");
  }
  handoff::OpenReply reply{.dataset = 5,
                           .samples = manifest_.samples(),
                           .manifest_bytes = manifest_.bytes().size(),
                           .name = by_short_name ? "vision/short" : "local/test",
                           .manifest_fd = manifest_file_.get()};
  std::ranges::copy(manifest_.digest(), reply.digest.begin());
  return reply;
}

Result<handoff::AttachReply> HandoffServer::OnAttach(ClientId /*client*/,
                                                     const handoff::AttachRequest& request) {
  Report("attach", Field("loader", request.loader) + Field("known", request.known) +
                       Field("kind", request.kind) + Field("size", request.size) +
                       Field("seed", request.seed) + Field("world", request.world) +
                       Field("rank", request.rank) + Field("shuffle", request.shuffle) +
                       Field("drop_last", request.drop_last) +
                       Field("base_seed", request.base_seed) + Field("passes", request.passes) +
                       Field("passes_from", request.passes_from) + Field("behind", request.behind) +
                       Field("pass_reads", request.pass_reads) +
                       (request.order.empty() ? std::string() : Field("order", request.order)));
  if (request.loader == "refused") {
    return Error(Code::kConflict, "rank 1 says that the seed is 7, this rank says 8");
  }
  return handoff::AttachReply{.stream = kStream, .first_pass = 3};
}

Status HandoffServer::OnPass(ClientId /*client*/, const handoff::PassRequest& request) {
  Report("pass", Field("rank", request.rank) + Field("pass", request.pass) +
                     Field("epoch", request.epoch) + Field("start", request.start) +
                     Field("length", request.length) +
                     (request.crc ? Field("crc", *request.crc) : std::string()));
  return OkStatus();
}

Status HandoffServer::OnTrace(ClientId /*client*/, handoff::TraceRequest request) {
  Report("trace", Field("rank", request.rank) + Field("pass", request.pass) +
                      Field("first", request.first) + Field("length", request.length) +
                      Field("count", request.ids.size()) +
                      Field("crc", sampler::OrderCrc(request.ids)));
  return OkStatus();
}

void HandoffServer::OnGet(ClientId client, handoff::RequestId request, handoff::GetRequest get) {
  Report("get",
         Field("client", client) + Field("count", get.ids.size()) + Field("stream", get.stream) +
             Field("pass", get.pass) + Field("first", get.first) +
             Field("id", get.ids.empty() ? std::numeric_limits<SampleId>::max() : get.ids.front()));
  due_.push_back({.at = clock_.Now() + options_.delay,
                  .client = client,
                  .request = request,
                  .get = std::move(get)});
  RunDue();
}

void HandoffServer::RunDue() {
  while (!due_.empty() && due_.front().at <= clock_.Now()) {
    const DueAnswer due = std::move(due_.front());
    due_.pop_front();
    Answer(due);
  }
}

void HandoffServer::Answer(const DueAnswer& due) {
  if (!channel_->PeerOf(due.client)) return;
  Batch batch;
  handoff::SamplesReply reply;
  for (const SampleId id : due.get.ids) {
    reply.samples.push_back(Read(id, batch));
    if (std::holds_alternative<Status>(reply.samples.back())) continue;
    ++delivered_.samples;
    delivered_.bytes += manifest_.Size(id);
  }
  if (!batch.empty() || !staged_.empty()) {
    reply.batch = ++last_batch_;
    batches_.emplace(std::pair(due.client, reply.batch), std::move(batch));
  }
  channel_->Reply(due.client, due.request, reply);
}

handoff::ServedSample HandoffServer::Read(SampleId id, Batch& batch) {
  if (id >= manifest_.samples()) return Status(Code::kInvalidArgument, "there is no such sample");
  if (!staged_.empty()) {
    return handoff::ArenaSample{.offset = staged_[id].offset, .length = staged_[id].length};
  }
  const ByteCount size = manifest_.Size(id);
  const auto bytes = ReadFile(options_.folder + "/" + manifest_.Path(id), size);
  if (!bytes) return bytes.error();
  if (const auto slot = arena_.Allocate(size)) {
    std::memcpy(arena_.Bytes(*slot).data(), bytes->data(), size);
    batch.push_back(*slot);
    return handoff::ArenaSample{
        .offset = slot->offset, .length = size, .stand_in = id == options_.stand_in};
  }
  if (!warned_) Report("overflow", Field("bytes", size));
  warned_ = true;
  const auto copy = std::make_shared<const std::string>(*bytes);
  return handoff::InlineSample{.bytes = AsBytes(*copy), .pin = copy};
}

void HandoffServer::FreeBatch(const Batch& batch) {
  for (const handoff::Slot& slot : batch) {
    std::memset(arena_.Bytes(slot).data(), kPoison, slot.length);
    arena_.Free(slot);
  }
}

void HandoffServer::OnRelease(ClientId client, const std::vector<handoff::BatchId>& batches) {
  for (const handoff::BatchId id : batches) {
    const auto found = batches_.find({client, id});
    if (found == batches_.end()) continue;
    FreeBatch(found->second);
    batches_.erase(found);
  }
  Report("release", Field("count", batches.size()) + Field("held", batches_.size()) +
                        Field("in_use", arena_.allocator().in_use()));
}

void HandoffServer::OnDetach(ClientId /*client*/, const handoff::DetachRequest& request) {
  Report("detach", Field("stream", request.stream) + Field("rank", request.rank));
}

// As if all samples had come from another node, and the store had been asked for three.
Result<handoff::ReadCounts> HandoffServer::OnReadCounts(
    ClientId /*client*/, const handoff::ReadCountsRequest& /*request*/) {
  return handoff::ReadCounts{.peers = delivered_,
                             .uncached_requests = delivered_.samples,
                             .uncached_bytes = delivered_.bytes,
                             .store_requests = 3,
                             .store_bytes = 3000,
                             .wait_us = 1'500'000,
                             .saved_cost = 0.25};
}

void HandoffServer::OnClientClosed(ClientId client) {
  const auto begin = batches_.lower_bound({client, 0});
  const auto end = batches_.lower_bound({client + 1, 0});
  for (auto it = begin; it != end; ++it) {
    FreeBatch(it->second);
  }
  batches_.erase(begin, end);
  Report("closed", Field("client", client) + Field("held", batches_.size()) +
                       Field("in_use", arena_.allocator().in_use()));
}

std::string HandoffServer::WhyWaiting(ClientId /*client*/, handoff::RequestId /*request*/) {
  return "the test server takes its time";
}

void HandoffServer::Report(const std::string& event, const std::string& fields) const {
  if (options_.quiet) return;
  std::printf("{\"event\": \"%s\"%s}\n", event.c_str(), fields.c_str());
  std::fflush(stdout);
}

}  // namespace optcache
