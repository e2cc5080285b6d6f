// optcache: the program for people. Each verb is one file of this folder.

#include "cli/program.h"

int main(int argc, char** argv) {
  return optcache::cli::RunProgram(argc, argv, OPTCACHE_VERSION);
}
