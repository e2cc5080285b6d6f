#include "cli/doctor/doctor.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "cli/doctor/doctor_facts.h"
#include "cli/doctor/doctor_findings.h"
#include "cli/local/state_dir.h"
#include "cli/terminal/choose.h"
#include "cli/terminal/print.h"

namespace optcache::cli {
namespace {

constexpr const char* kDoctorMore =
    R"(Checks memory, /dev/shm, the limit of open files, the clock, the sidecar's socket, and the pages of each node and
sidecar of `optcache up`. While training runs, it looks for 2 s at what limits it: the arena, the workers of the loader,
the store, the network, or training itself. It changes nothing. Each finding begins with ok, warning or fault. The line below a warning
or fault says what to do. The exit status is 1 if there is a fault.

Examples:
  Check this machine before you start a cache that takes 8 GiB:
    optcache doctor --memory 8Gi
  Check the shell in which training finds no cache:
    optcache doctor
  Read the findings in a script:
    optcache doctor --output json)";

struct DoctorRequest {
  std::string memory;
  std::string socket;
  std::string state_dir = DefaultStateDir();
  std::string output = "text";
};

Status Diagnose(const DoctorRequest& request) {
  DoctorQuestions questions{.socket = request.socket, .state_dir = request.state_dir};
  if (!request.memory.empty()) {
    Result<ByteCount> memory = ParseQuantity(request.memory);
    if (!memory) return std::move(memory).error().WithContext("--memory");
    questions.memory_wanted = *memory;
  }
  if (questions.socket.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets it
    if (const char* const named = std::getenv("OPTCACHE_SOCKET")) questions.socket = named;
  }
  const std::vector<Finding> findings = FindingsOf(GatherFacts(questions));
  RETURN_IF_ERROR(PrintAs(request.output, FindingsAsText(findings), FindingsAsJson(findings)));
  if (!HasFault(findings)) return OkStatus();
  return {Code::kUnavailable, "there is a fault; the line below it says what to do"};
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Action& chosen) {
  CLI::App* const command =
      app.add_subcommand("doctor", "Find what is wrong on this machine, and what to do");
  command->footer(kDoctorMore);
  const auto request = std::make_shared<DoctorRequest>();
  command->add_option("--memory", request->memory,
                      "Memory that a cache will take on this machine, its arenas included: 8Gi");
  command->add_option("--socket", request->socket,
                      "Socket of the sidecar; default: $OPTCACHE_SOCKET");
  command
      ->add_option("--state", request->state_dir,
                   "State folder of an `optcache up`; $OPTCACHE_COORDINATOR wins over it")
      ->capture_default_str();
  command->add_option("--output,-o", request->output, "Format of the output: text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}))
      ->capture_default_str();
  Choose(*command, request, Diagnose, chosen);
}

}  // namespace optcache::cli
