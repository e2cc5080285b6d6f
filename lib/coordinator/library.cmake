project_library(coordinator
  HEADERS coordinator.h manifest_placement.h membership.h observed_passes.h pass_history.h pass_sums.h rate_book.h read_ratios.h rollout.h
          savings_collector.h stream_ranks.h stream_registry.h trace_registry.h tracked_stream.h
  SOURCES coordinator.cc coordinator_datasets.cc coordinator_rates.cc coordinator_revisions.cc
          coordinator_status.cc coordinator_streams.cc manifest_placement.cc membership.cc observed_passes.cc pass_history.cc
          pass_sums.cc rate_book.cc read_ratios.cc rollout.cc rollout_nodes.cc rollout_observers.cc rollout_report.cc
          savings_collector.cc stream_ranks.cc stream_registry.cc trace_registry.cc tracked_stream.cc
  DEPS api base capacity coordination dataset sampler)
