project_test(cli
  SOURCES npy_test.cc order_test.cc
  DEPS cli_verbs)
