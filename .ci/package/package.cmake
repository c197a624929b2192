# What `cpack` makes in a build directory: a package for Debian and a tarball. `./dev package` does it all.
# What is in them is what `cmake --install` installs; staged.cmake finishes each as its format wants it.
set(CPACK_PACKAGE_NAME earshot)
set(CPACK_PACKAGE_VENDOR "the earshot authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "daemon that listens to coding agents at work")
set(CPACK_PACKAGE_DESCRIPTION "earshot tails the transcripts that coding agents write, makes events of them
(turn started, tool invoked, permission wanted, and so on) and tells these to
whoever subscribes: a terminal, a browser, a status bar, a program of yours.
.
It runs as the user whose agents it listens to, on this machine only, writes
nothing where agents write, and keeps secrets out of what it shows.
.
Nothing runs until you ask for it: systemctl --user enable --now earshot")
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

# The newest entry of the changelog says version, revision and who stands for it.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/changelog changelog)
list(GET changelog 0 newest)
if(NOT newest MATCHES "^earshot [(]${PROJECT_VERSION}-([0-9a-z.~+]+)[)]")
  message(FATAL_ERROR ".ci/package/changelog begins with \"${newest}\", but this is ${PROJECT_VERSION}: write what is new")
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
