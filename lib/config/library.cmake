find_package(yaml-cpp REQUIRED)

project_library(config
  HEADERS configuration.h
  SOURCES cache_plan.cc configuration.cc dataset.cc internal/yaml_document.cc
          internal/yaml_fields.cc
  DEPS base dataset
  PRIVATE_DEPS yaml-cpp)
