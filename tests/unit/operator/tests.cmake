find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)

project_test(operator
  SOURCES converted_jobs_test.cc dataset_choice_test.cc cache_plan_decide_test.cc cluster_plan_test.cc cluster_sync_test.cc cordons_test.cc
          drift_test.cc dataset_observe_test.cc dataset_status_test.cc index_job_test.cc index_period_test.cc
          manager_parts_test.cc missing_nodes_test.cc native_sidecars_test.cc operator_rollout_test.cc operator_test.cc pki_authority_test.cc
          pki_property_test.cc placement_test.cc plan_jobs_test.cc plan_rollout_test.cc prediction_test.cc proxy_variables_test.cc reconcile_cases_test.cc revisions_test.cc rollout_property_test.cc rollout_scripts_test.cc
          rollout_status_test.cc saved_totals_test.cc source_change_test.cc take_revisions_test.cc warmup_decide_test.cc webhook_corpus_test.cc
          webhook_parts_test.cc webhook_request_test.cc webhook_review_test.cc
          webhook_server_test.cc
  DEPS operator_manager nlohmann_json::nlohmann_json yaml-cpp)
target_sources(operator_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/fake_api_server.cc
                                     ${PROJECT_SOURCE_DIR}/tests/support/fake_api_store.cc)
