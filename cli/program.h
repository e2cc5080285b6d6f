#pragma once

namespace optcache::cli {

// Runs the command that the arguments name, and returns the exit status. `arguments[0]` decides how
// it reports errors: as `kubectl-optcache` it does what kubectl does, see program.cc.
int RunProgram(int count, const char* const* arguments, const char* version);

}  // namespace optcache::cli
