find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

project_library(headspace
  HEADERS options.h report.h report_json.h step_clock.h
  SOURCES options.cc report.cc report_json.cc step_clock.cc
  DEPS base
  PRIVATE_DEPS fmt::fmt nlohmann_json::nlohmann_json)
