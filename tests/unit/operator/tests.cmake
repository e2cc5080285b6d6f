find_package(nlohmann_json REQUIRED)

project_test(operator
  SOURCES pki_authority_test.cc pki_property_test.cc
          webhook_corpus_test.cc webhook_parts_test.cc webhook_request_test.cc webhook_review_test.cc
          webhook_server_test.cc
  DEPS metrics operator_pki operator_webhook_server nlohmann_json::nlohmann_json)
