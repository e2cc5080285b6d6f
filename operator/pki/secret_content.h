#pragma once

// What of the authority's Secret can be used: each part is checked by itself, so that one that is
// broken costs no other.

#include <optional>
#include <string>
#include <vector>

#include "operator/pki/authority.h"
#include "pki/pki.h"

namespace optcache::authority {

// A CA that can sign now.
struct Signer {
  std::string certificate;  // PEM
  std::string key;          // PEM
  pki::Validity validity;
};

struct Content {
  bool empty = false;  // as the chart makes it
  std::optional<Signer> signer;
  std::string signer_fault;  // why there is none
  std::optional<Signer> next;
  std::vector<std::string> trusted;  // what else stands in the bundle
  std::optional<Leaf> leaf;          // certificate and key belong together, no more
  std::string leaf_fault;            // why there is none
};

Content ReadContent(UnixSeconds now, const SecretData& secret);

// Only the keys that are ours; one that is missing is empty.
bool SameContent(const SecretData& ours, const SecretData& secret);

inline constexpr const char* kNodeName = "optcache-node";
inline constexpr const char* kOperatorName = "optcache-operator";
std::vector<std::string> OperatorNames(const AuthoritySettings& settings);

}  // namespace optcache::authority
