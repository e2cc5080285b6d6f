#pragma once

// `optcache doctor`: what is wrong on this machine, and what to do.

#include "cli/terminal/verb.h"

namespace optcache::cli {

void AddDoctorCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
