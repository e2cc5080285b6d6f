find_package(CURL REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(pugixml REQUIRED)
find_package(ZLIB REQUIRED)

project_library(storage
  HEADERS autoindex.h aws_profile.h concurrency_limit.h destination.h file_store.h http_keys.h http_store.h
          index.h index_ranges.h index_tar.h internal/alarm_thread.h internal/autoindex_walk.h
          internal/blocking_read.h internal/curl.h internal/digest_many.h internal/first_error.h
          internal/guessed_cuts.h internal/gunzip.h internal/http_exchange.h internal/key_files.h internal/md5.h
          internal/open_guesses.h internal/page_retries.h internal/range_index.h internal/s3_lister.h internal/shards.h
          breaking_store.h circuit_breaker.h failed_read_log.h hedge_policy.h hedging_store.h
          internal/source_file.h internal/stat_many.h internal/walk.h latency_quantiles.h
          limiting_store.h inventory.h key_list.h listed_bucket.h listing_file.h object_store.h open_store.h request_gate.h
          retry_budget.h retry_wait.h retrying_store.h s3_address.h s3_checksums.h s3_credentials.h s3_customer_key.h s3_error.h s3_listing.h
          s3_container_keys.h s3_instance_keys.h s3_key_chain.h s3_signature.h s3_store.h
          s3_temporary_keys.h s3_web_identity.h sample_read.h tar_index.h token_bucket.h
          verify.h wait_table.h whole_sums.h
  SOURCES autoindex.cc aws_profile.cc concurrency_limit.cc destination.cc file_store.cc http_keys.cc
          http_store.cc index.cc index_tar.cc internal/alarm_thread.cc
          internal/autoindex_walk.cc internal/curl.cc internal/digest_many.cc
          internal/source_file.cc internal/stat_many.cc internal/walk.cc limiting_store.cc
          inventory.cc key_list.cc listed_bucket.cc listing_file.cc object_store.cc open_store.cc request_gate.cc retry_budget.cc retry_wait.cc
          retrying_store.cc
          sample_read.cc tar_index.cc token_bucket.cc verify.cc wait_table.cc whole_sums.cc
          internal/guessed_cuts.cc internal/gunzip.cc internal/http_exchange.cc internal/key_files.cc internal/md5.cc internal/open_guesses.cc internal/page_retries.cc internal/s3_lister.cc
          s3_address.cc s3_checksums.cc s3_credentials.cc s3_customer_key.cc s3_error.cc s3_listing.cc s3_signature.cc s3_store.cc
          s3_container_keys.cc s3_instance_keys.cc s3_key_chain.cc s3_temporary_keys.cc
          s3_web_identity.cc
          breaking_store.cc circuit_breaker.cc failed_read_log.cc hedge_policy.cc hedging_store.cc latency_quantiles.cc
          index_ranges.cc internal/range_index.cc internal/shards.cc
  DEPS base dataset
  PRIVATE_DEPS fmt::fmt CURL::libcurl nlohmann_json::nlohmann_json OpenSSL::Crypto pugixml::pugixml ZLIB::ZLIB)
