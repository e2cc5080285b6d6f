find_package(nlohmann_json REQUIRED)

project_library(coordination
  HEADERS capacity_shares.h capacity_split.h codec.h coordinator.h dataset_spec.h desired_state.h manifest_placement.h observed_passes.h pass_sums.h plan_base.h rate_book.h rate_shares.h read_ratios.h report_size.h revisions.h rollout.h sample_set.h saved_bytes.h savings.h savings_collector.h
          settled_reads.h state.h status.h stream_ranks.h stream_recipe.h trace_registry.h tracked_stream.h water_filling.h
  SOURCES capacity_shares.cc capacity_split.cc codec_decode.cc codec_encode.cc coordinator.cc coordinator_datasets.cc coordinator_passes.cc coordinator_rates.cc coordinator_revisions.cc coordinator_status.cc
          coordinator_streams.cc coordinator_traces.cc desired_state.cc internal/json_fields.cc internal/json_values.cc manifest_placement.cc observed_passes.cc pass_sums.cc plan_base.cc rate_book.cc rate_shares.cc read_ratios.cc report_size.cc revisions.cc
          rollout.cc rollout_nodes.cc rollout_observers.cc rollout_report.cc sample_set.cc saved_bytes.cc savings.cc savings_collector.cc settled_reads.cc status_json.cc stream_ranks.cc stream_recipe.cc trace_registry.cc tracked_stream.cc version.cc water_filling.cc
  DEPS base dataset sampler
  PRIVATE_DEPS nlohmann_json::nlohmann_json)
