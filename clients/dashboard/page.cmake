# Which page the daemon has. Sets EARSHOT_PAGE_DIRECTORY, where its three files are, and EARSHOT_PAGE_FILES, what a build depends on.
# EARSHOT_PAGE: `auto`: the dashboard where it can be built, else the plain page, and says which; `plain`: no node is asked for.
set(EARSHOT_PAGE auto CACHE STRING "the page that the daemon serves: auto or plain")
set(page_plain ${CMAKE_SOURCE_DIR}/daemon/serve/page)
set(page_source ${CMAKE_SOURCE_DIR}/clients/dashboard)
set(page_node_oldest 18)
set(page_fetch_seconds_max 300) # without a network npm would try for long
set(page_why "")

if(EARSHOT_PAGE STREQUAL plain)
  set(page_why "EARSHOT_PAGE is plain")
else()
  find_program(NODE_PROGRAM node)
  find_program(NPM_PROGRAM npm)
  if(NOT NODE_PROGRAM OR NOT NPM_PROGRAM)
    set(page_why "there is no node and npm: with both the dashboard is built in")
  else()
    execute_process(COMMAND ${NODE_PROGRAM} -p "process.versions.node.split('.')[0]" OUTPUT_VARIABLE page_node OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(page_node LESS page_node_oldest)
      set(page_why "node is ${page_node}: the dashboard needs ${page_node_oldest}")
    endif()
  endif()
endif()

# What npm fetches is fetched once for each state of package-lock.json.
if(page_why STREQUAL "")
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
                    OUTPUT_VARIABLE page_said ERROR_VARIABLE page_said)
    if(page_failed)
      string(STRIP "${page_said}" page_said)
      string(REGEX REPLACE "\n.*" "" page_said "${page_said}")
      set(page_why "npm ci failed in clients/dashboard (${page_said}); the dashboard is built in once it succeeds there")
    else()
      file(WRITE ${page_source}/node_modules/.earshot-lock ${page_wanted})
    endif()
  endif()
endif()

if(page_why STREQUAL "")
  message(STATUS "page: the dashboard")
  set(EARSHOT_PAGE_DIRECTORY ${CMAKE_BINARY_DIR}/page)
  file(GLOB page_sources CONFIGURE_DEPENDS ${page_source}/src/* ${CMAKE_SOURCE_DIR}/clients/sdk/src/*.ts)
  set(EARSHOT_PAGE_FILES ${EARSHOT_PAGE_DIRECTORY}/index.html ${EARSHOT_PAGE_DIRECTORY}/app.js ${EARSHOT_PAGE_DIRECTORY}/style.css)
  add_custom_command(OUTPUT ${EARSHOT_PAGE_FILES} COMMENT "Building the dashboard"
    COMMAND ${CMAKE_COMMAND} -E env EARSHOT_PAGE_OUT=${EARSHOT_PAGE_DIRECTORY} ${NODE_PROGRAM} node_modules/vite/bin/vite.js build --logLevel warn
    WORKING_DIRECTORY ${page_source} VERBATIM
    DEPENDS ${page_sources} ${page_source}/index.html ${page_source}/vite.config.ts ${page_source}/tsconfig.json ${page_source}/package-lock.json)
  install(FILES ${EARSHOT_PAGE_DIRECTORY}/LICENSES.txt DESTINATION share/doc/earshot)
else()
  message(STATUS "page: the plain one: ${page_why}")
  set(EARSHOT_PAGE_DIRECTORY ${page_plain})
  set(EARSHOT_PAGE_FILES ${page_plain}/index.html ${page_plain}/app.js ${page_plain}/style.css)
endif()
