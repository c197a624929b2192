# Configures cpack: a Debian package and a tarball of the files that `cmake --install` installs. `./dev package` runs it.
# staged.cmake adapts the files to each format.
set(CPACK_PACKAGE_NAME earshot)
set(CPACK_PACKAGE_VENDOR "the earshot authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "daemon that monitors coding agents")
set(CPACK_PACKAGE_DESCRIPTION "earshot follows the transcripts that coding agents write, turns them into
events (turn started, tool invoked, permission requested, and so on) and sends
these to subscribers: a terminal, a browser, a status bar, your own programs.
.
It runs as the user whose agents it follows, listens on this machine only,
does not write to the agents' directories, and redacts known secret formats.
.
It is not started automatically: systemctl --user enable --now earshot")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_GENERATOR TGZ)
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
if(DPKG_SHLIBDEPS)
  list(PREPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_FILE_NAME earshot-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/generator.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/staged.cmake)
set(CPACK_EARSHOT_SOURCE ${CMAKE_SOURCE_DIR})
set(CPACK_MONOLITHIC_INSTALL ON)

# The latest entry of the changelog has the version, the revision and the maintainer.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/changelog changelog)
list(GET changelog 0 newest)
if(NOT newest MATCHES "^earshot [(]${PROJECT_VERSION}-([0-9a-z.~+]+)[)]")
  message(FATAL_ERROR ".ci/package/changelog begins with \"${newest}\", but the version is ${PROJECT_VERSION}: add a changelog entry")
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE ${CMAKE_MATCH_1})
foreach(line ${changelog})
  if(line MATCHES "^ -- (.+>)  " AND NOT CPACK_DEBIAN_PACKAGE_MAINTAINER)
    set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${CMAKE_MATCH_1}")
  endif()
endforeach()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "jq, xdg-utils, nats-server")
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/postinst)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
