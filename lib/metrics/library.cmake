find_package(prometheus-cpp REQUIRED)

project_library(metrics
  HEADERS catalog.h metrics_page.h
  SOURCES catalog.cc metrics_page.cc process.cc
  DEPS base
  PRIVATE_DEPS prometheus-cpp::core)
