// optcache: the program for people. Each subcommand has a room: cli/README.md.

#include "base/log.h"
#include "cli/program.h"

int main(int argc, char** argv) {
  // Standard output is for what was asked for.
  optcache::SetUpLog("optcache", optcache::LogLevel::kInfo, optcache::LogFormat::kText);
  return optcache::cli::RunProgram(argc, argv, OPTCACHE_VERSION);
}
