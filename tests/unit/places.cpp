// The one file that knows the build's paths: nothing else need be compiled again for another clone.
#include "unit/places.hpp"

namespace earshot::test {

std::filesystem::path sources() { return EARSHOT_SOURCE; }
std::filesystem::path corpus() { return EARSHOT_CORPUS; }

}  // namespace earshot::test
