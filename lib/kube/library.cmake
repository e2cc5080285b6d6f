find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

project_library(kube
  HEADERS api_client.h api_error.h apply.h client.h conditions.h controller.h election.h
          event_series.h events.h fenced_client.h informer.h leader_election.h object.h
          object_cache.h resources.h watch_cycle.h watch_decoder.h work_queue.h
  SOURCES api_access.cc api_client.cc api_error.cc apply.cc client.cc conditions.cc controller.cc
          election.cc event_series.cc events.cc fenced_client.cc informer.cc internal/api_watch.cc
          internal/bearer_token.cc internal/rest_requests.cc
          leader_election.cc object.cc object_cache.cc resources.cc watch_cycle.cc
          watch_decoder.cc work_queue.cc
  DEPS base net
  PRIVATE_DEPS fmt::fmt)
target_link_libraries(kube PUBLIC nlohmann_json::nlohmann_json)
