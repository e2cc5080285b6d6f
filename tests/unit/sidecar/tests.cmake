project_test(sidecar
  SOURCES agent_test.cc alarms_test.cc byte_range_test.cc client_desk_test.cc computed_desk_property_test.cc computed_desk_test.cc computed_values_test.cc dataset_shelf_test.cc exit_watch_test.cc feeder_property_test.cc feeder_test.cc
          fetcher_test.cc headspace_meter_test.cc http_date_test.cc index_verb_test.cc joined_read_test.cc key_index_test.cc key_order_test.cc key_space_test.cc lease_book_test.cc manifest_client_test.cc manifest_upload_test.cc name_claims_test.cc next_uses_test.cc node_link_test.cc object_reads_test.cc order_replayer_test.cc pass_test.cc place_race_test.cc preconditions_test.cc put_window_test.cc python_copy_test.cc rank_reader_test.cc reader_table_test.cc
          s3_answer_test.cc s3_endpoint_test.cc s3_host_test.cc s3_pages_test.cc s3_request_test.cc sample_memory_test.cc sources_file_test.cc store_queue_test.cc store_reader_test.cc store_watch_test.cc stream_name_test.cc termination_test.cc warm_choice_test.cc warm_verb_test.cc warmer_test.cc
  DEPS sidecar_agent plan)
target_sources(sidecar_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/scripted_http_server.cc)
