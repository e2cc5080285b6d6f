#pragma once

// `optcache simulate`: what each policy would read from the store.

namespace CLI {
class App;
}

namespace optcache::cli {

// Adds the verb to `app`; it runs, and sets `exit_code`, when the command line names it.
void AddSimulateCommand(CLI::App& app, int& exit_code);

}  // namespace optcache::cli
