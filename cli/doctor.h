#pragma once

// `optcache doctor`: what is wrong on this machine, and what to do.

#include "cli/verb.h"

namespace optcache::cli {

void AddDoctorCommand(CLI::App& app, Verb& chosen);

}  // namespace optcache::cli
