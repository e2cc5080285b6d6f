project_test(storage
  SOURCES file_store_test.cc object_store_test.cc walk_test.cc
  DEPS storage fmt::fmt)
