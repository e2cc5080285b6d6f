#pragma once

// How the subcommands of one say what is to be done.

#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "cli/terminal/action.h"

namespace optcache::cli {

// Has `action` run on the flags when the command line names `command`.
template <typename Flags>
void Choose(CLI::App& command, std::shared_ptr<Flags> flags, Status (*action)(const Flags&),
            Action& chosen) {
  command.callback([flags = std::move(flags), action, &chosen] {
    chosen = [flags, action] { return action(*flags); };
  });
}

}  // namespace optcache::cli
