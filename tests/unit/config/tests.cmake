project_test(config
  SOURCES configuration_test.cc dlc_pod_test.cc yaml_value_test.cc
  DEPS config)
