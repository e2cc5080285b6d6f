project_test(coordinator
  SOURCES coordinator_distrust_test.cc coordinator_leaving_test.cc coordinator_passes_test.cc
          coordinator_property_test.cc coordinator_rates_test.cc coordinator_reindex_test.cc
          coordinator_restarts_test.cc coordinator_revisions_test.cc coordinator_successor_test.cc coordinator_test.cc
          coordinator_traces_test.cc first_revision_test.cc manifest_placement_test.cc membership_test.cc observed_passes_test.cc
          pass_history_test.cc pass_sums_test.cc rate_book_test.cc read_ratios_test.cc rollout_forecasts_test.cc rollout_jobs_test.cc
          rollout_nodes_test.cc rollout_observers_test.cc rollout_passes_test.cc rollout_report_test.cc
          rollout_test.cc savings_collector_test.cc stream_ranks_test.cc stream_registry_test.cc trace_registry_test.cc tracked_stream_test.cc
  DEPS coordinator simulation)
