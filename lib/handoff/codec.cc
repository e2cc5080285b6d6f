// Turns messages of the hand-over socket into bytes and back.
//
//   a frame     | body's length, type, request | fields | a list, to the end |
//   a Samples   | the same | batch, count, others | entries | [kinds] | inline bytes and errors |
//
// The idea: values are copied as they lie, little-endian and without padding, and a list takes all
// that is left of its body, so it needs no length. Reading never fails in the middle: BodyReader
// gives zeros after the first fault, and Finish reports it. Optional fields stand at the end of a
// body, and `more` tells whether one follows. A Samples frame becomes pieces, of which the inline
// ones point to the samples' own bytes, so nothing large is copied. The kinds of entries are left
// out where all samples lie in the arena.

#include "handoff/codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "handoff/internal/body_reader.h"

namespace optcache::handoff {
namespace {

using internal::BodyReader;
using internal::Plain;

static_assert(std::endian::native == std::endian::little, "values are copied as they are");

// --- Reading

Hello TakeHello(BodyReader& body) {
  Hello hello{.min_version = body.Take<std::uint16_t>(),
              .max_version = body.Take<std::uint16_t>(),
              .pid = body.Take<std::uint32_t>()};
  body.AllowMore();
  return hello;
}

AttachRequest TakeAttach(BodyReader& body) {
  AttachRequest attach{.dataset = body.Take<DatasetHandle>(),
                       .incarnation = body.Take<std::uint32_t>(),
                       .owner = body.TakeString(),
                       .loader = body.TakeString(),
                       .known = body.TakeBool(),
                       .kind = body.Take<std::uint8_t>(),
                       .size = body.Take<std::uint64_t>(),
                       .seed = body.Take<std::int64_t>(),
                       .world = body.Take<std::uint32_t>(),
                       .rank = body.Take<Rank>(),
                       .shuffle = body.TakeBool(),
                       .drop_last = body.TakeBool(),
                       .modern_randperm = body.TakeBool(),
                       .base_seed = body.Take<std::uint8_t>(),
                       .tail_permutation = body.TakeBool(),
                       .passes = body.Take<std::uint32_t>(),
                       .passes_from = body.Take<PassNumber>(),
                       .behind = body.Take<std::uint32_t>(),
                       .order = {},
                       .pass_reads = 0,
                       .job = {}};
  if (body.more()) attach.order = body.TakeString();
  if (body.more()) attach.pass_reads = body.Take<std::uint64_t>();
  if (body.more()) attach.job = body.TakeString();
  return attach;
}

TraceRequest TakeTrace(BodyReader& body) {
  return {.stream = body.Take<StreamId>(),
          .rank = body.Take<Rank>(),
          .pass = body.Take<PassNumber>(),
          .first = body.Take<std::uint64_t>(),
          .length = body.Take<std::uint64_t>(),
          .ids = body.TakeList<SampleId>(kMaxIds)};
}

PassRequest TakePass(BodyReader& body) {
  PassRequest pass{.stream = body.Take<StreamId>(),
                   .rank = body.Take<Rank>(),
                   .pass = body.Take<PassNumber>(),
                   .epoch = body.Take<std::uint64_t>(),
                   .start = body.Take<std::uint64_t>(),
                   .length = body.Take<std::uint64_t>(),
                   .crc = {}};
  const bool crc_known = body.TakeBool();
  const auto crc = body.Take<std::uint32_t>();
  if (crc_known) pass.crc = crc;
  return pass;
}

GetRequest TakeGet(BodyReader& body) {
  return {.dataset = body.Take<DatasetHandle>(),
          .stream = body.Take<StreamId>(),
          .rank = body.Take<Rank>(),
          .pass = body.Take<PassNumber>(),
          .first = body.Take<std::uint64_t>(),
          .ids = body.TakeList<SampleId>(kMaxIds)};
}

OpenComputedRequest TakeOpenComputed(BodyReader& body) {
  return {.name = body.TakeString(),
          .what = body.TakeString(),
          .samples = body.Take<std::uint64_t>(),
          .max_bytes = body.Take<ByteCount>()};
}

ComputedPut TakeComputedPut(BodyReader& body) {
  return {.lease = body.Take<LeaseId>(),
          .length = body.Take<std::uint64_t>(),
          .offset = body.Take<std::uint64_t>(),
          .bytes = body.TakeList<std::byte>(kMaxPutBytes)};
}

template <typename M>
Result<ClientMessage> Finished(BodyReader& body, std::string_view name, M message) {
  RETURN_IF_ERROR(body.Finish(name));
  return message;
}

// --- Writing

class FrameWriter {
 public:
  FrameWriter(FrameType type, RequestId request) {
    frame_.reserve(kUsualFrameBytes);
    Put(FrameHeader{.body_bytes = 0, .type = type, .zero = {}, .request = request});
  }

  template <Plain T>
  FrameWriter& Put(const T& value) {
    return PutBytes(std::as_bytes(std::span(&value, 1)));
  }
  FrameWriter& PutBool(bool value) { return Put<std::uint8_t>(value ? 1 : 0); }
  FrameWriter& PutBytes(ByteSpan bytes) {
    frame_.insert(frame_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  FrameWriter& PutString(std::string_view text) {
    text = text.substr(0, kMaxStringBytes);
    Put(static_cast<std::uint16_t>(text.size()));
    return PutBytes(AsBytes(text));
  }
  template <Plain T>
  FrameWriter& PutList(const std::vector<T>& items) {
    return PutBytes(std::as_bytes(std::span(items)));
  }

  // `more_bytes` of the body follow elsewhere.
  FrameBytes Finish(std::uint64_t more_bytes = 0) {
    const auto length =
        static_cast<std::uint32_t>(frame_.size() - sizeof(FrameHeader) + more_bytes);
    std::memcpy(frame_.data() + offsetof(FrameHeader, body_bytes), &length, sizeof(length));
    return std::move(frame_);
  }

 private:
  static constexpr std::size_t kUsualFrameBytes = 128;  // one allocation for most

  FrameBytes frame_;
};

FrameBytes Encode(RequestId request, const Hello& hello) {
  return FrameWriter(FrameType::kHello, request)
      .Put(hello.min_version)
      .Put(hello.max_version)
      .Put(hello.pid)
      .Finish();
}

FrameBytes Encode(RequestId request, const OpenRequest& open) {
  return FrameWriter(FrameType::kOpen, request).PutString(open.name).Finish();
}

FrameBytes Encode(RequestId request, const AttachRequest& attach) {
  FrameWriter frame(FrameType::kAttach, request);
  frame.Put(attach.dataset)
      .Put(attach.incarnation)
      .PutString(attach.owner)
      .PutString(attach.loader)
      .PutBool(attach.known)
      .Put(attach.kind)
      .Put(attach.size)
      .Put(attach.seed)
      .Put(attach.world)
      .Put(attach.rank)
      .PutBool(attach.shuffle)
      .PutBool(attach.drop_last)
      .PutBool(attach.modern_randperm)
      .Put(attach.base_seed)
      .PutBool(attach.tail_permutation)
      .Put(attach.passes)
      .Put(attach.passes_from)
      .Put(attach.behind);
  const bool has_job = !attach.job.empty();
  const bool has_reads = attach.pass_reads != 0 || has_job;
  if (!attach.order.empty() || has_reads) frame.PutString(attach.order);
  if (has_reads) frame.Put(attach.pass_reads);
  if (has_job) frame.PutString(attach.job);
  return frame.Finish();
}

FrameBytes Encode(RequestId request, const TraceRequest& trace) {
  return FrameWriter(FrameType::kTrace, request)
      .Put(trace.stream)
      .Put(trace.rank)
      .Put(trace.pass)
      .Put(trace.first)
      .Put(trace.length)
      .PutList(trace.ids)
      .Finish();
}

FrameBytes Encode(RequestId request, const PassRequest& pass) {
  return FrameWriter(FrameType::kPass, request)
      .Put(pass.stream)
      .Put(pass.rank)
      .Put(pass.pass)
      .Put(pass.epoch)
      .Put(pass.start)
      .Put(pass.length)
      .PutBool(pass.crc.has_value())
      .Put(pass.crc.value_or(0))
      .Finish();
}

FrameBytes Encode(RequestId request, const GetRequest& get) {
  return FrameWriter(FrameType::kGet, request)
      .Put(get.dataset)
      .Put(get.stream)
      .Put(get.rank)
      .Put(get.pass)
      .Put(get.first)
      .PutList(get.ids)
      .Finish();
}

FrameBytes Encode(RequestId request, const ReleaseRequest& release) {
  return FrameWriter(FrameType::kRelease, request).PutList(release.batches).Finish();
}

FrameBytes Encode(RequestId request, const DetachRequest& detach) {
  return FrameWriter(FrameType::kDetach, request).Put(detach.stream).Put(detach.rank).Finish();
}

FrameBytes Encode(RequestId request, const OpenComputedRequest& open) {
  return FrameWriter(FrameType::kOpenComputed, request)
      .PutString(open.name)
      .PutString(open.what)
      .Put(open.samples)
      .Put(open.max_bytes)
      .Finish();
}

FrameBytes Encode(RequestId request, const ComputedPut& put) {
  return FrameWriter(FrameType::kComputedPut, request)
      .Put(put.lease)
      .Put(put.length)
      .Put(put.offset)
      .PutList(put.bytes)
      .Finish();
}

FrameBytes Encode(RequestId request, const ComputedCountsRequest& counts) {
  return FrameWriter(FrameType::kComputedCounts, request).Put(counts.dataset).Finish();
}

FrameBytes Encode(RequestId request, const ReadCountsRequest& counts) {
  return FrameWriter(FrameType::kReadCounts, request).Put(counts.dataset).Finish();
}

// The body of a Samples frame's error entry.
FrameBytes ErrorEntry(const Status& status) {
  const std::string_view text = std::string_view(status.message()).substr(0, kMaxStringBytes);
  FrameBytes body{static_cast<std::byte>(status.code())};
  body.insert(body.end(), AsBytes(text).begin(), AsBytes(text).end());
  return body;
}

// The entries of a Samples frame, and what follows them.
struct Entries {
  std::uint16_t version = kMaxVersion;
  std::vector<SampleEntry> entries;
  std::vector<EntryKind> kinds;
  std::vector<Piece> tail;
  std::uint64_t tail_bytes = 0;

  void Add(const ArenaSample& sample) {
    entries.push_back({.place = sample.offset, .length = sample.length});
    kinds.push_back(sample.stand_in && version >= 2 ? EntryKind::kStandIn : EntryKind::kArena);
  }
  void Add(const InlineSample& sample) {
    AddToTail(EntryKind::kInline, {.owned = {}, .pinned = sample.bytes, .pin = sample.pin});
  }
  void Add(const Status& status) {
    AddToTail(EntryKind::kError, {.owned = ErrorEntry(status), .pinned = {}, .pin = {}});
  }
  void AddToTail(EntryKind kind, Piece piece) {
    const std::uint64_t length = piece.bytes().size();
    entries.push_back({.place = tail_bytes, .length = length});
    kinds.push_back(kind);
    tail_bytes += length;
    tail.push_back(std::move(piece));
  }
};

}  // namespace

Result<ClientMessage> DecodeClientMessage(FrameType type, ByteSpan body) {
  BodyReader reader(body);
  switch (type) {
    case FrameType::kHello:
      return Finished(reader, "Hello", TakeHello(reader));
    case FrameType::kOpen:
      return Finished(reader, "Open", OpenRequest{.name = reader.TakeString()});
    case FrameType::kAttach:
      return Finished(reader, "Attach", TakeAttach(reader));
    case FrameType::kPass:
      return Finished(reader, "Pass", TakePass(reader));
    case FrameType::kGet:
      return Finished(reader, "Get", TakeGet(reader));
    case FrameType::kRelease:
      return Finished(reader, "Release",
                      ReleaseRequest{.batches = reader.TakeList<BatchId>(kMaxReleases)});
    case FrameType::kDetach:
      return Finished(
          reader, "Detach",
          DetachRequest{.stream = reader.Take<StreamId>(), .rank = reader.Take<Rank>()});
    case FrameType::kTrace:
      return Finished(reader, "Trace", TakeTrace(reader));
    case FrameType::kOpenComputed:
      return Finished(reader, "OpenComputed", TakeOpenComputed(reader));
    case FrameType::kComputedPut:
      return Finished(reader, "ComputedPut", TakeComputedPut(reader));
    case FrameType::kComputedCounts:
      return Finished(reader, "ComputedCounts",
                      ComputedCountsRequest{.dataset = reader.Take<DatasetHandle>()});
    case FrameType::kReadCounts:
      return Finished(reader, "ReadCounts",
                      ReadCountsRequest{.dataset = reader.Take<DatasetHandle>()});
    default:
      return Error(Code::kInvalidArgument,
                   "no client sends frames of type " + std::to_string(static_cast<int>(type)));
  }
}

FrameBytes EncodeClientFrame(RequestId request, const ClientMessage& message) {
  return std::visit([&](const auto& m) { return Encode(request, m); }, message);
}

FrameBytes EncodeWelcome(RequestId request, std::uint16_t version, ByteCount arena_size) {
  return FrameWriter(FrameType::kWelcome, request)
      .Put(version)
      .Put(std::uint16_t{0})
      .Put(std::uint32_t{0})
      .Put(arena_size)
      .Finish();
}

FrameBytes EncodeOpened(RequestId request, const OpenReply& reply, std::uint16_t version) {
  FrameWriter frame(FrameType::kOpened, request);
  frame.Put(reply.dataset)
      .Put(reply.samples)
      .PutBytes(reply.digest)
      .Put(reply.manifest_bytes)
      .PutString(reply.name);
  if (version >= 2) frame.PutString(reply.notice);
  return frame.Finish();
}

FrameBytes EncodeAttached(RequestId request, const AttachReply& reply, std::uint16_t version) {
  FrameWriter frame(FrameType::kAttached, request);
  frame.Put(reply.stream).Put(reply.first_pass);
  if (version >= 2) frame.PutString(reply.loader);
  return frame.Finish();
}

FrameBytes EncodeDone(RequestId request) {
  return FrameWriter(FrameType::kDone, request).Finish();
}

FrameBytes EncodeWaiting(RequestId request, std::string_view why) {
  return FrameWriter(FrameType::kWaiting, request).PutString(why).Finish();
}

FrameBytes EncodeError(RequestId request, const Status& status) {
  return FrameWriter(FrameType::kError, request)
      .Put(static_cast<std::uint8_t>(status.code()))
      .PutString(status.message())
      .Finish();
}

FrameBytes EncodeComputedOpened(RequestId request, const OpenComputedReply& reply) {
  return FrameWriter(FrameType::kComputedOpened, request)
      .Put(reply.dataset)
      .PutBool(reply.first)
      .Put(reply.capacity)
      .Put(reply.memory_size)
      .Finish();
}

FrameBytes EncodeValue(RequestId request, const ValueReply& reply) {
  return FrameWriter(FrameType::kValue, request).Put(reply.offset).Put(reply.length).Finish();
}

FrameBytes EncodeCompute(RequestId request, const ComputeReply& reply) {
  return FrameWriter(FrameType::kCompute, request).Put(reply.lease).Put(reply.room).Finish();
}

FrameBytes EncodeCounts(RequestId request, const ComputedCounts& counts) {
  return FrameWriter(FrameType::kCounts, request)
      .Put(counts.capacity)
      .Put(counts.bytes)
      .Put(counts.values)
      .Put(counts.hits)
      .Put(counts.misses)
      .Put(counts.evictions)
      .Finish();
}

FrameBytes EncodeReads(RequestId request, const ReadCounts& counts) {
  FrameWriter writer(FrameType::kReads, request);
  for (const ReadCounts::Part& part : {counts.node, counts.peers, counts.store})
    writer.Put(part.samples).Put(part.bytes);
  return writer.Put(counts.uncached_requests)
      .Put(counts.uncached_bytes)
      .Put(counts.store_requests)
      .Put(counts.store_bytes)
      .Put(counts.wait_us)
      .PutBool(counts.saved_cost.has_value())
      .Put(counts.saved_cost.value_or(0))
      .Finish();
}

Result<std::vector<Piece>> EncodeSamples(RequestId request, const SamplesReply& reply,
                                         std::uint16_t version) {
  Entries all{.version = version};
  all.entries.reserve(reply.samples.size());
  all.kinds.reserve(reply.samples.size());
  for (const ServedSample& sample : reply.samples) {
    std::visit([&](const auto& s) { all.Add(s); }, sample);
  }
  const std::size_t usual =
      static_cast<std::size_t>(std::ranges::count(all.kinds, EntryKind::kArena));
  const SamplesHeader header{.batch = reply.batch,
                             .count = static_cast<std::uint32_t>(all.entries.size()),
                             .others = static_cast<std::uint32_t>(all.kinds.size() - usual)};
  FrameWriter writer(FrameType::kSamples, request);
  writer.Put(header).PutList(all.entries);
  if (header.others > 0) writer.PutList(all.kinds);
  const std::uint64_t fixed = sizeof(header) + all.entries.size() * (sizeof(SampleEntry) + 1);
  if (all.tail_bytes > kMaxReplyBytes - fixed) {
    return Error(Code::kResourceExhausted,
                 "a batch of " + FormatBytes(all.tail_bytes) +
                     " that has no room in the arena is too large to be sent by copy: use smaller "
                     "batches or a larger arena");
  }
  std::vector<Piece> pieces;
  pieces.push_back({.owned = writer.Finish(all.tail_bytes), .pinned = {}, .pin = {}});
  for (Piece& piece : all.tail) {
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace optcache::handoff
