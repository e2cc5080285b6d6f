#pragma once

#include <string>

#include "base/status.h"

namespace optcache::sidecar {

// Puts the Python package in the folder `package` where training containers find it, as
// `folder`/optcache, readable for everybody; python/src/optcache/_injected.py stands in front of
// it. `folder`/optcache_injected.dist-info, a copy of `package`/_dist_info, names its entry points.
// Each of the two folders is there as a whole or not at all, and a copy of the same version stays
// as it is, since processes may be importing it. kNotFound: there is no such package.
Status CopyPythonPackage(const std::string& package, const std::string& folder);

}  // namespace optcache::sidecar
