# Selects the page that the daemon serves. Sets EARSHOT_PAGE_DIRECTORY, the directory of its files, and EARSHOT_PAGE_FILES, their paths, index.html first.
# EARSHOT_PAGE: `auto` selects the dashboard if Node and npm are installed, else the plain page, and prints the choice; `plain` needs no Node.
set(EARSHOT_PAGE auto CACHE STRING "the page that the daemon serves: auto or plain")
set(page_plain ${CMAKE_SOURCE_DIR}/daemon/serve/page)
set(page_source ${CMAKE_SOURCE_DIR}/clients/dashboard)
set(page_node_oldest 18)
set(page_fetch_seconds_max 300) # npm retries for long without a network
set(page_plain_reason "")

if(EARSHOT_PAGE STREQUAL plain)
  set(page_plain_reason "EARSHOT_PAGE is plain")
else()
  foreach(program NODE NPM)
    if(NOT EXISTS "${${program}_PROGRAM}")
      unset(${program}_PROGRAM CACHE) # removed since the last configuration
    endif()
  endforeach()
  find_program(NODE_PROGRAM node)
  find_program(NPM_PROGRAM npm)
  if(NOT NODE_PROGRAM OR NOT NPM_PROGRAM)
    set(page_plain_reason "node and npm are not installed: install both to build the dashboard")
  else()
    execute_process(COMMAND ${NODE_PROGRAM} -p process.versions.node OUTPUT_VARIABLE page_node OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(page_node VERSION_LESS page_node_oldest)
      set(page_plain_reason "node ${page_node} is too old: the dashboard needs ${page_node_oldest}")
    endif()
  endif()
endif()

# npm ci runs once for each version of package-lock.json.
if(page_plain_reason STREQUAL "")
  set(page_lock ${page_source}/package-lock.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_lock})
  file(SHA256 ${page_lock} page_wanted)
  set(page_have "")
  if(EXISTS ${page_source}/node_modules/.earshot-lock)
    file(READ ${page_source}/node_modules/.earshot-lock page_have)
  endif()
  if(NOT page_have STREQUAL page_wanted)
    message(STATUS "page: npm ci in clients/dashboard")
    execute_process(COMMAND ${NPM_PROGRAM} ci --no-audit --no-fund --prefer-offline --fetch-retries=1 --fetch-timeout=30000 --loglevel=error
                    WORKING_DIRECTORY ${page_source} TIMEOUT ${page_fetch_seconds_max} RESULT_VARIABLE page_failed
                    OUTPUT_VARIABLE page_output ERROR_VARIABLE page_output)
    if(page_failed)
      string(STRIP "${page_output}" page_output)
      string(REGEX REPLACE "\n.*" "" page_output "${page_output}")
      set(page_plain_reason "npm ci failed in clients/dashboard: ${page_output}")
    else()
      file(WRITE ${page_source}/node_modules/.earshot-lock ${page_wanted})
    endif()
  endif()
endif()

if(page_plain_reason STREQUAL "")
  message(STATUS "page: the dashboard")
  set(EARSHOT_PAGE_DIRECTORY ${CMAKE_BINARY_DIR}/page)
  file(GLOB page_sources CONFIGURE_DEPENDS ${page_source}/src/* ${CMAKE_SOURCE_DIR}/clients/sdk/src/*.ts)
  set(EARSHOT_PAGE_FILES index.html app.js session.js highlight.js style.css)
  list(TRANSFORM EARSHOT_PAGE_FILES PREPEND ${EARSHOT_PAGE_DIRECTORY}/)
  set(page_tools ${CMAKE_BINARY_DIR}/page.tools) # changes with Node and the npm packages
  file(CONFIGURE OUTPUT ${page_tools} CONTENT "node ${page_node}, packages ${page_wanted}\n")
  add_custom_command(OUTPUT ${EARSHOT_PAGE_FILES} COMMENT "Building the dashboard"
    COMMAND ${CMAKE_COMMAND} -E env EARSHOT_PAGE_OUT=${EARSHOT_PAGE_DIRECTORY} ${NODE_PROGRAM} node_modules/vite/bin/vite.js build --logLevel warn
    WORKING_DIRECTORY ${page_source} VERBATIM
    DEPENDS ${page_sources} ${page_source}/index.html ${page_source}/vite.config.ts ${page_source}/tsconfig.json ${page_tools})
  install(FILES ${EARSHOT_PAGE_DIRECTORY}/LICENSES.txt DESTINATION share/doc/earshot)
else()
  message(STATUS "page: the plain page: ${page_plain_reason}")
  set(EARSHOT_PAGE_DIRECTORY ${page_plain})
  set(EARSHOT_PAGE_FILES ${page_plain}/index.html ${page_plain}/app.js ${page_plain}/style.css)
endif()
