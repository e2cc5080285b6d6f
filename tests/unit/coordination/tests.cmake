project_test(coordination
  SOURCES codec_test.cc desired_state_test.cc plan_base_test.cc rate_shares_test.cc report_size_test.cc
          revisions_test.cc sample_set_test.cc savings_test.cc status_test.cc stream_recipe_test.cc
  DEPS coordinator)
