// earshot: the command-line client of earshotd.
#include "cli/commands.hpp"

int main(int argc, char** argv) { return earshot::cli::run(argc, argv); }
