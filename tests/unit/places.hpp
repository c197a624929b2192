// Where tests find what they read: the sources, and recorded sessions, which may be absent.
#pragma once
#include <filesystem>

namespace earshot::test {

std::filesystem::path sources();
std::filesystem::path corpus();

}  // namespace earshot::test
