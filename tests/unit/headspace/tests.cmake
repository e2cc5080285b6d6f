project_test(headspace
  SOURCES options_test.cc report_json_test.cc report_test.cc step_clock_test.cc
  DEPS headspace)
