find_package(prometheus-cpp REQUIRED)

project_library(metrics
  HEADERS catalog.h internal/catalog_parts.h metrics_page.h
  SOURCES catalog.cc catalog_node.cc catalog_operator.cc catalog_sidecar.cc metrics_page.cc process.cc
  DEPS base
  PRIVATE_DEPS prometheus-cpp::core)
