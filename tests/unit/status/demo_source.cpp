// The demo belongs to the program, not to a room's library: its sources are compiled in here.
#include "demo.cpp"
