find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

project_library(kube
  HEADERS api_client.h api_error.h apply.h client.h conditions.h controller.h event_series.h
          events.h fenced_client.h informer.h leader_election.h object.h object_cache.h resources.h
          time_text.h watch_cycle.h watch_decoder.h work_queue.h
  SOURCES api_error.cc conditions.cc internal/percent_encoding.cc object.cc resources.cc
          time_text.cc
  DEPS base net
  PRIVATE_DEPS fmt::fmt)
target_link_libraries(kube PUBLIC nlohmann_json::nlohmann_json)
