project_test(metrics
  SOURCES catalog_test.cc metrics_page_test.cc
  DEPS metrics)
