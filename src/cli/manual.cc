#include <fxgraph/cli/manual.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

namespace fx::cli {

namespace {

/// Text as roff takes it: no line may begin with a control character, dashes are meant as typed.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

bool is_flag(const CLI::Option& option) { return option.get_type_size_max() == 0; }

/// The options of a command but for those that every command has.
std::vector<const CLI::Option*> options_of(const CLI::App& app, bool positional) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() == positional && option != app.get_help_ptr()) options.push_back(option);
  }
  return options;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) commands.push_back(command);
  }
  return commands;
}

std::string synopsis(const CLI::App& command) {
  std::string line;
  for (const CLI::Option* option : options_of(command, true)) {
    line += option->get_required() ? ' ' + option->get_name(true) : " [" + option->get_name(true) + ']';
  }
  return line + " [options]";
}

/// The words of a check that chooses from a set: `{text,json}` in the type's name.
std::vector<std::string> choices(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

/// `-o, --output FILE`, `--format text|json`
std::string spelling(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  if (is_flag(option)) return names;
  const std::vector<std::string> words = choices(option);
  return names + ' ' + (words.empty() ? option.get_type_name() : fmt::format("{}", fmt::join(words, "|")));
}

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(app, false)) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string page = fmt::format(".TH FXGRAPH 1 \"\" \"fxgraph {}\"\n.SH NAME\n{}\n", FXGRAPH_VERSION,
                                 roff("fxgraph - capture, analyse, rewrite and save LibTorch programs as graphs"));
  auto out = std::back_inserter(page);
  fmt::format_to(out, ".SH SYNOPSIS\n.B fxgraph\nCOMMAND FILE [options]\n.SH COMMANDS\n");
  for (const CLI::App* command : commands_of(app)) {
    fmt::format_to(out, ".SS \"{}{}\"\n{}.\n", roff(command->get_name()), roff(synopsis(*command)),
                   roff(command->get_description()));
    for (const bool positional : {true, false}) {
      for (const CLI::Option* option : options_of(*command, positional)) {
        fmt::format_to(out, ".TP\n.B {}\n{}\n", roff(positional ? option->get_name(true) : spelling(*option)),
                       roff(option->get_description()));
      }
    }
  }
  fmt::format_to(out, ".SH EXIT STATUS\n0 done, 1 bad input or a failed check, 2 wrong usage.\n");
  return page;
}

std::string bash_completion(const CLI::App& app) {
  std::string script =
      "# Completion of fxgraph for bash.\n_fxgraph() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  case ${COMP_WORDS[1]}:$before in\n";
  auto out = std::back_inserter(script);
  const auto commands = commands_of(app);
  std::vector<std::string> names;
  for (const CLI::App* command : commands) {
    names.push_back(command->get_name());
    for (const CLI::Option* option : options_of(*command, false)) {
      const std::vector<std::string> words = choices(*option);
      if (words.empty()) continue;
      fmt::format_to(out, "    {}:--{}) COMPREPLY=($(compgen -W '{}' -- \"$word\")); return ;;\n", command->get_name(),
                     option->get_lnames().front(), fmt::join(words, " "));
    }
  }
  fmt::format_to(out, "  esac\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n",
                 fmt::join(names, " "));
  fmt::format_to(out, "    return\n  fi\n  if [[ $word == -* ]]; then\n    case ${{COMP_WORDS[1]}} in\n");
  for (const CLI::App* command : commands) {
    fmt::format_to(out, "      {}) COMPREPLY=($(compgen -W '{} --help' -- \"$word\")) ;;\n", command->get_name(),
                   fmt::join(long_names(*command), " "));
  }
  script +=
      "    esac\n    return\n  fi\n  COMPREPLY=($(compgen -f -- \"$word\"))\n}\ncomplete -o filenames -F _fxgraph "
      "fxgraph\n";
  return script;
}

}  // namespace fx::cli
