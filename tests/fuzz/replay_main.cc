// Runs a fuzz target over the files of a corpus: `<thing>_fuzz FOLDER|FILE...`. Stands in for
// libFuzzer where the compiler has none, so that every build replays what was once found.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// The files of the arguments, those of a folder in the order of their names.
std::vector<fs::path> ListInputs(int count, char** arguments) {
  std::vector<fs::path> inputs;
  for (int i = 1; i < count; ++i) {
    const fs::path argument(arguments[i]);
    if (!fs::is_directory(argument)) {
      inputs.push_back(argument);
      continue;
    }
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(argument))
      files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    inputs.insert(inputs.end(), files.begin(), files.end());
  }
  return inputs;
}

bool Replay(const fs::path& input) {
  std::ifstream file(input, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", input.c_str());
    return false;
  }
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::printf("%s: %zu bytes\n", input.c_str(), bytes.size());
  std::fflush(stdout);  // names the input if the target ends the process
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<fs::path> inputs = ListInputs(argc, argv);
  if (inputs.empty()) {
    std::fprintf(stderr, "no inputs: give a folder with at least one file, or files\n");
    return 1;
  }
  return std::all_of(inputs.begin(), inputs.end(), Replay) ? 0 : 1;
}
