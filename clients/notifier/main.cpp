// earshot-notify: notifies you when an agent needs you.
#include "notifier/commands.hpp"

int main(int argc, char** argv) { return earshot::notifier::run(argc, argv); }
