find_package(yaml-cpp REQUIRED)

project_library(config
  HEADERS configuration.h dlc_pod.h yaml_value.h
  SOURCES cache_plan.cc configuration.cc dataset.cc dlc_pod.cc internal/yaml_document.cc
          internal/yaml_fields.cc yaml_value.cc
  DEPS api base dataset
  PRIVATE_DEPS yaml-cpp)
