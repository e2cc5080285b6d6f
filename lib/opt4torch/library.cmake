find_package(nlohmann_json REQUIRED)

project_library(opt4torch
  HEADERS decision_table.h plan_file.h safetensors.h
  SOURCES decision_table.cc plan_file.cc safetensors.cc
  DEPS base plan simulation
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
