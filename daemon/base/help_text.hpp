// The help of the programs, laid out for the terminal. Pure, except help_columns().
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace earshot {

/// The columns of the terminal on stdout, from 40 to 120; 80 if stdout is not a terminal.
std::size_t help_columns();

/// Breaks lines between words. What follows a name and two blanks continues below itself. Lines that were
/// broken within a sentence are joined first. Other lines with an indentation of two blanks are commands, and
/// stay whole. Of several empty lines one is kept.
std::string wrap_help(std::string_view help, std::size_t columns);

}  // namespace earshot
