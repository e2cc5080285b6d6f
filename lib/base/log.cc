#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <memory>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/utf8.h"

namespace optcache {
namespace {

std::atomic<LogFormat> g_format = LogFormat::kText;

// Within quotes, also of JSON.
std::string Escape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, std::max<std::size_t>(Utf8Length(text), 1));
    text.remove_prefix(character.size());
    const std::string shown = Visible(character);
    // JSON has no \x: there it is the text "\xff".
    if (character == "\"" || character == "\\" || shown.starts_with("\\x")) out += '\\';
    out += shown;
  }
  return out;
}

bool NeedsQuotes(std::string_view text) {
  return text.empty() || text.find_first_of(" =\"\\") != std::string_view::npos ||
         Visible(text) != text;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

void SetPattern(spdlog::logger& logger, std::string_view program, LogFormat format) {
  logger.set_pattern(
      format == LogFormat::kJson
          ? fmt::format(R"({{"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","program":"{}",%v}})",
                        program)
          : fmt::format("%Y-%m-%dT%H:%M:%S.%eZ %l {} %v", program),
      spdlog::pattern_time_type::utc);
}

// spdlog's own default logger writes to stdout, so it is never used: a program that logs before
// SetUpLog, or without it, keeps its stdout for what it prints.
spdlog::logger& Logger() {
  static const auto logger = [] {
    auto made = std::make_unique<spdlog::logger>("optcache",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    SetPattern(*made, "optcache", LogFormat::kText);
    return made;
  }();
  return *logger;
}

}  // namespace

LogField::LogField(std::string_view name, double value)
    : key(name), text(fmt::format("{:.6g}", value)) {}

std::string FormatLogLine(LogFormat format, std::string_view event,
                          std::initializer_list<LogField> fields) {
  if (format == LogFormat::kJson) {
    std::string line = fmt::format("\"event\":\"{}\"", Escape(event));
    for (const LogField& field : fields) {
      line += fmt::format(",\"{}\":\"{}\"", field.key, Escape(field.text));
    }
    return line;
  }
  std::string line = Visible(event);
  for (const LogField& field : fields) {
    line += NeedsQuotes(field.text) ? fmt::format(" {}=\"{}\"", field.key, Escape(field.text))
                                    : fmt::format(" {}={}", field.key, field.text);
  }
  return line;
}

void SetUpLog(std::string_view program, LogLevel level, LogFormat format) {
  g_format = format;
  Logger().set_level(ToSpdlog(level));
  SetPattern(Logger(), program, format);
}

void Log(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  const auto spdlog_level = ToSpdlog(level);
  if (!Logger().should_log(spdlog_level)) return;
  Logger().log(spdlog_level, "{}", FormatLogLine(g_format, event, fields));
}

}  // namespace optcache
