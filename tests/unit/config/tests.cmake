project_test(config
  SOURCES configuration_test.cc
  DEPS config)
