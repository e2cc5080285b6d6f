project_library(handoff
  HEADERS arena.h channel.h codec.h computed_messages.h frame_buffer.h layout.h memory_file.h messages.h socket.h
          internal/body_reader.h internal/connection.h internal/output_queue.h
  SOURCES arena.cc channel.cc codec.cc frame_buffer.cc memory_file.cc socket.cc
          internal/connection.cc internal/output_queue.cc
  DEPS base)
