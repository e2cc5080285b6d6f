find_package(fmt REQUIRED)

project_test(storage
  SOURCES curl_test.cc digest_many_test.cc file_store_test.cc http_keys_test.cc http_store_test.cc index_test.cc listing_file_test.cc
          object_store_test.cc open_store_test.cc retrying_store_test.cc stat_many_test.cc verify_test.cc
          walk_test.cc
  DEPS storage fmt::fmt)
target_sources(storage_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/scripted_http_server.cc)
