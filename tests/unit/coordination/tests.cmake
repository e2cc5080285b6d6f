project_test(coordination
  SOURCES base64_test.cc codec_test.cc plan_base_test.cc sample_set_test.cc
  DEPS coordination)
