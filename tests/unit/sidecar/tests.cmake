project_test(sidecar SOURCES feeder_property_test.cc DEPS sidecar_core)
