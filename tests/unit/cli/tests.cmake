find_package(fmt REQUIRED)

project_test(cli
  SOURCES cluster_questions_test.cc cluster_view_test.cc dataset_setup_test.cc kubectl_test.cc leftovers_test.cc
          live_screen_test.cc
          machines_test.cc manifest_report_test.cc memory_split_test.cc npy_test.cc order_test.cc plan_report_test.cc plan_request_test.cc pod_story_test.cc
          simulate_charts_test.cc simulate_report_test.cc simulate_scene_test.cc state_dir_test.cc status_view_test.cc supervisor_test.cc svg_chart_test.cc
          text_table_test.cc whole_number_test.cc
  DEPS cli_verbs fmt::fmt)
