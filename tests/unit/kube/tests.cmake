project_test(kube
  SOURCES api_access_test.cc api_client_test.cc api_error_test.cc api_watch_test.cc apply_test.cc
          bearer_token_test.cc client_test.cc conditions_test.cc controller_test.cc
          election_test.cc event_series_test.cc events_test.cc fenced_client_test.cc
          informer_test.cc leader_election_test.cc object_cache_test.cc object_test.cc
          resources_test.cc watch_cycle_test.cc
          watch_decoder_test.cc work_queue_test.cc
  DEPS kube)
target_sources(kube_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/fake_api_server.cc
                                 ${PROJECT_SOURCE_DIR}/tests/support/fake_api_store.cc)
