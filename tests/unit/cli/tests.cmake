find_package(fmt REQUIRED)

project_test(cli
  SOURCES manifest_report_test.cc npy_test.cc order_test.cc simulate_report_test.cc
  DEPS cli_verbs fmt::fmt)
