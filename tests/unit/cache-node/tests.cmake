project_test(cache-node
  SOURCES dataset_cache_test.cc planned_run_test.cc stream_table_test.cc
  DEPS node_core)
target_include_directories(cache_node_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/unit)
