find_package(yaml-cpp REQUIRED)

project_library(config
  HEADERS configuration.h dlc_pod.h yaml_value.h
  SOURCES configuration.cc dlc_pod.cc internal/yaml_document.cc yaml_value.cc
  DEPS api base
  PRIVATE_DEPS yaml-cpp)
