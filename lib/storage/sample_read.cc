#include "storage/sample_read.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "dataset/members.h"

namespace optcache::storage {
namespace {

using dataset::Layout;
using dataset::Manifest;
using dataset::Member;

}  // namespace

SampleRange RangeOf(const Manifest& manifest, SampleId sample) {
  const std::vector<Member> members = manifest.MembersOf(sample);
  return {.object = manifest.ObjectOf(sample),
          .begin = members.front().offset,
          .end = members.back().offset + members.back().size};
}

bool NeedsRead(const Manifest& manifest, const SampleRange& range) {
  return range.length() > 0 || manifest.layout() == Layout::kObjects;
}

void LayOut(const Manifest& manifest, SampleId sample, MutableByteSpan into,
            Destination& destination) {
  CHECK(into.size() == manifest.Size(sample));
  if (manifest.layout() != Layout::kGroups) return destination.Add(into);
  const std::vector<Member> members = manifest.MembersOf(sample);
  const std::string head = dataset::MembersHead(manifest.Path(sample), members);
  CHECK(head.size() <= into.size());
  std::ranges::copy(AsBytes(head), into.begin());
  into = into.subspan(head.size());
  ByteCount end = members.front().offset;
  for (const Member& member : members) {
    destination.Skip(member.offset - end);
    destination.Add(into.first(member.size));
    end = member.offset + member.size;
    const ByteCount padding = dataset::MemberPadding(member.size);
    std::ranges::fill(into.subspan(member.size, padding), std::byte{0});
    into = into.subspan(member.size + padding);
  }
}

ReadRequest RequestFor(const Manifest& manifest, std::uint32_t object, ByteCount begin,
                       Destination destination, Deadline deadline) {
  dataset::Object from = manifest.ObjectAt(object);
  return {.object = std::move(from.path),
          .offset = begin,
          .destination = std::move(destination),
          .object_size = from.size,
          .validator = std::move(from.validator),
          .deadline = deadline};
}

}  // namespace optcache::storage
