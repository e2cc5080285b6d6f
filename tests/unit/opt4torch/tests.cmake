project_test(opt4torch
  SOURCES decision_table_test.cc plan_file_test.cc safetensors_test.cc
  DEPS opt4torch)
