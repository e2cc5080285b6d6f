find_package(fmt REQUIRED)

project_test(cli
  SOURCES cluster_view_test.cc coordinator_status_test.cc dataset_name_test.cc dataset_setup_test.cc dataset_usage_test.cc dlcpod_test.cc doctor_facts_test.cc doctor_findings_test.cc fetch_pages_test.cc headspace_print_test.cc kubectl_test.cc orphans_test.cc training_command_test.cc
          dashboard/dashboard_file_test.cc dashboard/panel_picture_test.cc dashboard/prometheus_test.cc
          dashboard/render_report_test.cc dashboard/template_text_test.cc value_text_test.cc dashboard/variable_values_test.cc
          live_screen_test.cc local_cluster_test.cc local_sources_test.cc
          machines_test.cc manifest_report_test.cc memory_split_test.cc metrics_text_test.cc npy_test.cc order_test.cc page_looks_test.cc plan_in_cluster_test.cc plan_report_test.cc plan_request_test.cc plan_suggest_test.cc pod_questions_test.cc pod_diagnosis_test.cc
          prediction_test.cc program_test.cc revision_report_test.cc rollout_actions_test.cc rollout_progress_test.cc rollout_watch_test.cc running_cache_test.cc
          savings_test.cc sidecar_pages_test.cc simulate_charts_test.cc simulate_report_test.cc simulate_scene_test.cc simulate_until_test.cc state_dir_test.cc status_questions_test.cc status_view_test.cc suggestion_test.cc supervisor_test.cc svg_chart_test.cc
          text_table_test.cc time_unit_test.cc until_search_test.cc warm_progress_test.cc warmup_cluster_test.cc warmup_local_test.cc whole_number_test.cc yaml_text_test.cc
          dataset_diagnosis_test.cc explain_questions_test.cc finding_test.cc job_pods_test.cc job_diagnosis_test.cc local_diagnosis_test.cc
          reader_finding_test.cc training_limit_test.cc child_process_test.cc
  DEPS cli_subcommands fmt::fmt)
