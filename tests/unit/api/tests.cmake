find_package(yaml-cpp REQUIRED)

project_test(api
  SOURCES cache_plan_test.cc crd_test.cc dataset_test.cc fields_test.cc source_test.cc warmup_test.cc
  DEPS api nlohmann_json::nlohmann_json yaml-cpp)
