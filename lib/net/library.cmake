project_library(net
  HEADERS client_pool.h connection.h dialer.h event_loop.h http.h http_client.h http_server.h
          server.h
  DEPS base wire)
