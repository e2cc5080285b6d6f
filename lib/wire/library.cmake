project_library(wire
  HEADERS messages.h
  DEPS base)
