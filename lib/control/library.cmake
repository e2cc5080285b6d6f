find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

project_library(control
  HEADERS control_gate.h control_server.h control_service.h error_response.h
  SOURCES control_gate.cc control_server.cc control_service.cc error_response.cc
  DEPS base coordination coordinator metrics net
  PRIVATE_DEPS fmt::fmt nlohmann_json::nlohmann_json)
