find_package(nlohmann_json REQUIRED)

project_library(coordination
  HEADERS codec.h dataset_spec.h desired_state.h plan_base.h rate_shares.h report_size.h revisions.h sample_set.h
          savings.h state.h status.h stream_recipe.h
  SOURCES codec_decode.cc codec_encode.cc desired_state.cc internal/json_fields.cc internal/json_values.cc
          plan_base.cc rate_shares.cc report_size.cc revisions.cc sample_set.cc savings.cc status_json.cc
          stream_recipe.cc version.cc
  DEPS api base dataset plan sampler
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
