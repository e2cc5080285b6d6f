file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX}
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
foreach(program optcache kubectl-optcache optcache-node optcache-sidecar optcache-operator)
  execute_process(COMMAND ${PREFIX}/bin/${program} --help
                  OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  if(NOT help MATCHES "Usage: (kubectl )?optcache")
    message(FATAL_ERROR "${program} --help says:\n${help}")
  endif()
endforeach()
file(REMOVE_RECURSE ${PREFIX})
