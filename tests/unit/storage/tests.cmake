find_package(fmt REQUIRED)

project_test(storage
  SOURCES autoindex_test.cc aws_profile_test.cc autoindex_walk_test.cc curl_test.cc destination_test.cc digest_many_test.cc file_store_test.cc guessed_cuts_test.cc gunzip_test.cc http_keys_test.cc http_store_test.cc index_tar_test.cc index_test.cc inventory_test.cc key_list_test.cc listed_bucket_test.cc listing_file_test.cc
          object_store_test.cc open_guesses_test.cc open_store_test.cc page_retries_test.cc retrying_calls_test.cc retrying_store_test.cc sample_read_test.cc source_file_test.cc stat_many_test.cc tar_index_test.cc verify_test.cc
          wait_table_test.cc walk_test.cc
          alarm_thread_test.cc breaking_store_test.cc circuit_breaker_test.cc concurrency_limit_test.cc failed_read_log_test.cc hedge_policy_test.cc hedging_store_test.cc latency_quantiles_test.cc md5_test.cc limiting_store_test.cc request_gate_test.cc retry_budget_test.cc retry_wait_test.cc token_bucket_test.cc
          s3_address_test.cc s3_checksums_test.cc s3_credentials_test.cc s3_customer_key_test.cc s3_error_test.cc s3_lister_test.cc 
          s3_listing_test.cc s3_signature_test.cc s3_store_test.cc s3_web_identity_test.cc
          s3_container_keys_test.cc s3_instance_keys_test.cc s3_key_chain_test.cc s3_temporary_keys_test.cc
          index_ranges_test.cc whole_sums_test.cc
  DEPS storage fmt::fmt)
target_sources(storage_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/scripted_http_server.cc)
