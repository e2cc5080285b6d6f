find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)

project_library(coordination
  HEADERS codec.h plan_base.h sample_set.h state.h
  SOURCES codec_decode.cc codec_encode.cc internal/base64.cc internal/json_fields.cc plan_base.cc
          sample_set.cc version.cc
  DEPS base
  PRIVATE_DEPS nlohmann_json::nlohmann_json OpenSSL::Crypto)
