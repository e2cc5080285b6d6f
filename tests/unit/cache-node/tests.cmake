project_test(cache-node
  SOURCES access_test.cc control_client_test.cc control_http_test.cc dataset_cache_test.cc dataset_leases_test.cc dataset_peers_test.cc deriver_ends_test.cc disk_cache_test.cc authorizer_test.cc following_test.cc identity_test.cc retention_manager_spares_test.cc retention_manager_test.cc
          listing_test.cc live_memory_test.cc manifest_file_test.cc manifest_path_test.cc manifest_manager_test.cc
          manifest_store_test.cc message_router_test.cc node_disk_test.cc node_visitors_test.cc pass_counts_test.cc peer_links_test.cc peer_watch_test.cc plan_deriver_test.cc plan_task_test.cc planned_run_test.cc planned_shares_test.cc private_entries_test.cc rate_table_test.cc relocation_test.cc report_room_test.cc rollout_run_test.cc state_dir_test.cc state_follower_test.cc
          savings_table_test.cc store_table_test.cc stream_table_test.cc
          token_check_test.cc trace_parts_test.cc trial_run_test.cc use_forecast_test.cc
  DEPS node_io coordinator)
target_include_directories(cache_node_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/unit)
