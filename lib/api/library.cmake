find_package(nlohmann_json REQUIRED)

project_library(api
  HEADERS cache_plan.h dataset.h enumerations.h fields.h limits.h source.h warmup.h
  SOURCES cache_plan.cc dataset.cc fields.cc source.cc warmup.cc
  DEPS base dataset plan)
target_link_libraries(api PUBLIC nlohmann_json::nlohmann_json)
