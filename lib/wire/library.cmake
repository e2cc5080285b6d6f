project_library(wire
  HEADERS codec.h frame.h frame_reader.h messages.h session.h
  SOURCES codec.cc frame.cc frame_reader.cc session.cc
  DEPS base)
