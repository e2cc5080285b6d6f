#pragma once

// `optcache doctor`: what is wrong on this machine, and what to do.

#include "cli/terminal/action.h"

namespace optcache::cli {

void AddDoctorCommand(CLI::App& app, Action& chosen);

}  // namespace optcache::cli
