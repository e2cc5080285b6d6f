#include "support/source_dir.h"

namespace optcache {

std::string InRepository(const std::string& path) {
  return OPTCACHE_SOURCE_DIR "/" + path;
}

}  // namespace optcache
