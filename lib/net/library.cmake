find_package(Threads REQUIRED)
find_package(cpprestsdk REQUIRED)
find_package(OpenSSL REQUIRED)  # inline in the headers of cpprestsdk

project_library(net
  HEADERS address.h client_pool.h connection.h dialer.h event_loop.h http.h http_body.h http_client.h
          http_server.h peer.h periodic_timer.h server.h service_pages.h stop_signals.h tls.h
          tls_files.h worker_thread.h
  SOURCES address.cc client_pool.cc connection.cc dialer.cc event_loop.cc http.cc http_client.cc
          http_server.cc internal/bulk.cc internal/handshake_gate.cc internal/http_answer.cc
          internal/http_exchange.cc internal/http_session.cc internal/listener.cc
          internal/rest_client.cc internal/send_queue.cc internal/socket_bio.cc
          internal/socket_connection.cc internal/stall_watch.cc internal/stream.cc
          internal/tls_socket.cc internal/unix_http_client.cc internal/connections_by_source.cc
          peer.cc periodic_timer.cc server.cc service_pages.cc stop_signals.cc tls.cc tls_files.cc
          worker_thread.cc
  DEPS base wire
  PRIVATE_DEPS cpprestsdk::cpprest OpenSSL::SSL OpenSSL::Crypto Threads::Threads)

if(OPTCACHE_SANITIZE MATCHES undefined)
  # Some of cpprestsdk's objects are made in its own, uninstrumented library: the check of their
  # dynamic type cannot see through them.
  set_source_files_properties(net/internal/rest_client.cc
                              PROPERTIES COMPILE_OPTIONS -fno-sanitize=vptr)
endif()
