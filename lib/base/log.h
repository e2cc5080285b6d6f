#pragma once

// One line an event, with fields:
//   Log(LogLevel::kInfo, "stream attached", {{"stream", id}, {"rank", 3}});
// Nothing per sample above debug. Thread-safe.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace optcache {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// A field's value, already as text; quoted when written if it has to be.
struct LogField {
  LogField(std::string_view name, std::string_view value) : key(name), text(value) {}
  LogField(std::string_view name, const char* value) : key(name), text(value) {}
  LogField(std::string_view name, std::string value) : key(name), text(std::move(value)) {}
  LogField(std::string_view name, double value);
  template <typename Integer>
    requires std::is_integral_v<Integer>
  LogField(std::string_view name, Integer value) : key(name), text(std::to_string(value)) {}

  std::string_view key;
  std::string text;
};

// Once, first thing in main: `program` stands in every line. Lines go to stderr, also before it.
void SetUpLog(std::string_view program, LogLevel level, LogFormat format);

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields = {});

// The line as it would be written, without time and level; for tests.
std::string FormatLogLine(LogFormat format, std::string_view event,
                          std::initializer_list<LogField> fields);

}  // namespace optcache
