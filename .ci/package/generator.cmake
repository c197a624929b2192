# Read by cpack once for each format, before anything is installed for it.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
else()
  set(CPACK_PACKAGING_INSTALL_PREFIX "")  # one folder, to be unpacked anywhere
endif()
