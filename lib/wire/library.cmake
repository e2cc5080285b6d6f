project_library(wire
  HEADERS codec.h frame.h frame_reader.h messages.h seal.h session.h
  SOURCES codec.cc frame.cc frame_reader.cc seal.cc session.cc
  DEPS base)
