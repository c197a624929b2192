#include "demo_script.cpp"
