#pragma once

// The fields of each message in the order in which they stand in its body (docs/formats/wire.md):
// one list for writing and for reading.

#include <concepts>
#include <tuple>
#include <type_traits>

#include "wire/messages.h"

namespace optcache::wire::internal {

template <typename T, typename M>
concept Is = std::same_as<std::remove_const_t<T>, M>;

constexpr auto Fields(Is<Hello> auto& m) {
  return std::tie(m.min_version, m.max_version, m.role, m.name, m.member, m.token);
}
constexpr auto Fields(Is<Welcome> auto& m) {
  return std::tie(m.version, m.name);
}
// What was added to messages that may grow: an older peer does not send it.
constexpr auto AddedFields(Is<Hello> auto& m) {
  return std::tie(m.bulk);
}
constexpr auto AddedFields(Is<Welcome> auto& m) {
  return std::tie(m.bulk);
}
constexpr auto Fields(Is<Refusal> auto& m) {
  return std::tie(m.code, m.message);
}
constexpr auto Fields(Is<ReadItem> auto& m) {
  return std::tie(m.pass, m.position, m.id);
}
constexpr auto Fields(Is<Get> auto& m) {
  return std::tie(m.dataset, m.stream, m.mode, m.items);
}
constexpr auto Fields(Is<SampleReply> auto& m) {
  return std::tie(m.index, m.answer, m.lease, m.wait_ms, m.crc);
}
constexpr auto Fields(Is<Put> auto& m) {
  return std::tie(m.dataset, m.stream, m.item, m.lease, m.crc);
}
constexpr auto Fields(Is<StoreReply> auto& m) {
  return std::tie(m.dataset, m.id, m.accepted, m.reason);
}
constexpr auto Fields(Is<LeaseUpdate> auto& m) {
  return std::tie(m.dataset, m.event, m.leases);
}
constexpr auto Fields(Is<std::pair<SampleId, LeaseId>> auto& m) {
  return std::tie(m.first, m.second);
}
constexpr auto Fields(Is<StreamAttach> auto& m) {
  return std::tie(m.dataset, m.dataset_name, m.stream, m.stream_name, m.incarnation, m.sampler_kind,
                  m.size, m.seed, m.world, m.rank, m.shuffle, m.drop_last, m.modern_randperm,
                  m.base_seed, m.tail_permutation, m.known, m.passes);
}
constexpr auto Fields(Is<StreamOrder> auto& m) {
  return std::tie(m.stream, m.rank, m.recipe);
}
constexpr auto Fields(Is<StreamTrace> auto& m) {
  return std::tie(m.stream, m.rank, m.pass, m.bits, m.length, m.offset, m.packed);
}
constexpr auto Fields(Is<StreamPassEnd> auto& m) {
  return std::tie(m.stream, m.rank, m.reads);
}
constexpr auto Fields(Is<StoreHealth> auto& m) {
  return std::tie(m.dataset, m.state, m.silent_ms, m.cause);
}
constexpr auto Fields(Is<Savings> auto& m) {
  return std::tie(m.dataset, m.requests, m.bytes, m.wait_us);
}
constexpr auto Fields(Is<StoreDemand> auto& m) {
  return std::tie(m.dataset, m.requests_milli, m.bytes, m.requests_held_back, m.bytes_held_back);
}
constexpr auto Fields(Is<StoreShare> auto& m) {
  return std::tie(m.dataset, m.requests_milli, m.bytes);
}
constexpr auto Fields(Is<StreamProgress> auto& m) {
  return std::tie(m.stream, m.rank, m.pass, m.epoch, m.start, m.position, m.wait_us, m.order_known,
                  m.ended);
}
constexpr auto Fields(Is<Lookup> auto& m) {
  return std::tie(m.dataset, m.want_lease, m.ids);
}
constexpr auto Fields(Is<LookupItem> auto& m) {
  return std::tie(m.id, m.found, m.holder, m.lease, m.keep);
}
constexpr auto Fields(Is<LookupReply> auto& m) {
  return std::tie(m.dataset, m.items);
}
constexpr auto Fields(Is<Holding> auto& m) {
  return std::tie(m.dataset, m.gained, m.lost);
}
constexpr auto Fields(Is<Announce> auto& m) {
  return std::tie(m.dataset, m.ids);
}
constexpr auto Fields(Is<Push> auto& m) {
  return std::tie(m.dataset, m.stream, m.item, m.crc);
}

// The values that an enumeration may have on the wire.
template <typename E>
inline constexpr std::pair<E, E> kRange;
template <>
inline constexpr std::pair<Role, Role> kRange<Role> = {Role::kSidecar, Role::kNode};
template <>
inline constexpr std::pair<GetMode, GetMode> kRange<GetMode> = {GetMode::kStage, GetMode::kPeer};
template <>
inline constexpr std::pair<Answer, Answer> kRange<Answer> = {Answer::kHere, Answer::kAbsent};
template <>
inline constexpr std::pair<LeaseEvent, LeaseEvent> kRange<LeaseEvent> = {LeaseEvent::kRenew,
                                                                         LeaseEvent::kFailed};
template <>
inline constexpr std::pair<StoreState, StoreState> kRange<StoreState> = {StoreState::kUntried,
                                                                         StoreState::kChanged};
template <>
inline constexpr std::pair<Found, Found> kRange<Found> = {Found::kHeld, Found::kNobody};

}  // namespace optcache::wire::internal
