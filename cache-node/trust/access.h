#pragma once

// Who may do what on this node: rules over a caller and the desired state. Pure. The sentences go
// to the caller that is refused.

#include <string_view>

#include "base/status.h"
#include "cache-node/trust/token_check.h"
#include "coordination/state.h"
#include "wire/messages.h"

namespace optcache::node {

// Is `name_space` the dataset's own? What its pods put there is believed; what others put is not.
bool Owns(std::string_view name_space, std::string_view dataset_name);

// kPermissionDenied: the dataset is another namespace's, which does not share it with this one.
Status MayUse(const Caller& caller, const coordination::DatasetState& dataset);

// May this pod connect under that name? It must be its own.
Status MayConnect(const Caller& caller, const wire::Hello& hello);

// May this pod announce that it reads this stream? It must be a stream of its namespace, of a
// dataset that it may use, under the id that its name and incarnation make.
Status MayAnnounce(const Caller& caller, const wire::StreamAttach& attach,
                   const coordination::DesiredState& state);

}  // namespace optcache::node
