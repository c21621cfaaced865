// The manual page and the shell completion of the program, made from its own options, so that they say what it takes.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace fx::cli {

/// The manual page of section 1, in roff.
std::string manual_page(const CLI::App& app);

/// A script for bash: completes commands, options, the words that an option chooses from, and files.
std::string bash_completion(const CLI::App& app);

}  // namespace fx::cli
