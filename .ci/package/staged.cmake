# Run by cpack between installing and packing: adapts the files in CPACK_TEMPORARY_DIRECTORY to the format.
# With SOURCE_DATE_EPOCH set, file times are fixed, so packages are reproducible.
set(here ${CMAKE_CURRENT_LIST_DIR})
set(stage ${CPACK_TEMPORARY_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" stage "${stage}")
set(documents ${stage}/share/doc/earshot)
if(CPACK_GENERATOR STREQUAL "DEB")
  set(prefix /usr)
else()
  set(prefix /usr/local)  # where systemd looks for the units of a tarball
endif()

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# The units of a tarball contain the staging path.
file(GLOB_RECURSE units ${stage}/lib/systemd/*.service)
foreach(unit ${units})
  file(READ ${unit} text)
  string(REPLACE ${stage}/bin/ ${prefix}/bin/ text "${text}")
  file(WRITE ${unit} "${text}")
endforeach()

file(GLOB programs ${stage}/bin/*)
run(strip --strip-unneeded --remove-section=.comment --remove-section=.note ${programs})

if(CPACK_GENERATOR STREQUAL "DEB")
  file(GLOB pages ${stage}/share/man/man*/*)
  file(COPY_FILE ${here}/copyright ${documents}/copyright)
  file(COPY_FILE ${here}/changelog ${documents}/changelog.Debian)
  run(gzip --best --no-name ${pages} ${documents}/changelog.Debian)
  file(MAKE_DIRECTORY ${stage}/share/lintian/overrides)
  file(RENAME ${stage}/share/zsh/site-functions ${stage}/share/zsh/vendor-completions)  # Debian's zsh looks there
  file(COPY_FILE ${here}/lintian-overrides ${stage}/share/lintian/overrides/earshot)
else()
  file(COPY_FILE ${CPACK_EARSHOT_SOURCE}/LICENSE ${documents}/LICENSE)
  file(COPY_FILE ${here}/TARBALL.md ${documents}/INSTALL.md)
endif()

run(find ${CPACK_TEMPORARY_DIRECTORY} -type d -exec chmod 755 {} +)
run(find ${CPACK_TEMPORARY_DIRECTORY} -type f -exec chmod 644 {} +)
run(chmod 755 ${programs})
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  run(find ${CPACK_TEMPORARY_DIRECTORY} -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} +)
endif()
