find_package(nlohmann_json REQUIRED)

project_test(control
  SOURCES control_gate_test.cc control_server_test.cc control_service_test.cc
          error_response_test.cc
  DEPS control nlohmann_json::nlohmann_json)
