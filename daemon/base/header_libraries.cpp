// Header-only libraries, compiled once for all programs: Asio and Beast (BOOST_…_SEPARATE_COMPILATION),
// toml++ (TOML_HEADER_ONLY).
#define TOML_IMPLEMENTATION
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>

#include "base/toml.hpp"
