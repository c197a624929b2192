// The demo belongs to the program, not to a library: its sources are compiled in here.
#include "demo.cpp"
