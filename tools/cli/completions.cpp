// SPDX-License-Identifier: Apache-2.0
// `completions`: scripts for bash, zsh and fish, out of the commands as they are.
#include <algorithm>

#include "tools/cli/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/output.h"

namespace cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string names_of(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return joined(names);
}

std::string options_of(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const OptionInfo& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return joined(names);
}

// Values of the positional argument, as in `completions bash`.
std::string words_of(const CommandInfo& command) {
  for (const OptionInfo& option : command.options) {
    if (option.names.empty() && !option.values.empty()) return joined(option.values);
  }
  return "";
}

// Whether another positional argument is a file.
bool has_file(const CommandInfo& command) {
  return std::any_of(command.options.begin(), command.options.end(), [](const OptionInfo& option) {
    return option.names.empty() && option.values.empty() && option.takes_files;
  });
}

bool has_positional(const CommandInfo& command) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [](const OptionInfo& option) { return option.names.empty(); });
}

// --sites=VALUE may go without its value, which then has no place of its own.
bool is_value_optional(const OptionInfo& option) {
  return option.argument.starts_with("[=");
}

// What may follow an option, by command: "report:--format) words='text json'".
std::string bash_values(const std::vector<CommandInfo>& commands) {
  std::string out;
  for (const CommandInfo& command : commands) {
    for (const OptionInfo& option : command.options) {
      if (option.names.empty() || option.argument.empty() || is_value_optional(option)) continue;
      std::string pattern;
      for (const std::string& name : option.names) {
        pattern += (pattern.empty() ? "" : "|") + command.name + ":" + name;
      }
      out += "    " + pattern + ") ";
      if (!option.values.empty()) {
        out +=
            "COMPREPLY=($(compgen -W '" + joined(option.values) + "' -- \"$word\")); return ;;\n";
      } else if (option.takes_files) {
        out += "COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
      } else {
        out += "return ;;\n";
      }
    }
  }
  return out;
}

std::string bash_words(const std::vector<CommandInfo>& commands) {
  std::string out;
  for (const CommandInfo& command : commands) {
    std::string words = options_of(command);
    if (const std::string more = words_of(command); !more.empty()) words += " " + more;
    out += "    " + command.name + ") words='" + words + "' ;;\n";
  }
  return out;
}

std::string bash(const std::vector<CommandInfo>& commands) {
  return "# bash completion of cajeta-xpu\n"
         "_cajeta_xpu() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words i\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         names_of(commands) +
         "' -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  if [ \"${COMP_WORDS[1]}\" = run ]; then\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "      if [ \"${COMP_WORDS[i]}\" = -- ]; then\n"
         "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "        [ $((i + 1)) = \"$COMP_CWORD\" ] && COMPREPLY+=($(compgen -c -- \"$word\"))\n"
         "        return\n"
         "      fi\n"
         "    done\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]}:$before in\n" +
         bash_values(commands) +
         "  esac\n"
         "  case ${COMP_WORDS[1]} in\n" +
         bash_words(commands) +
         "  esac\n"
         "  case $word in\n"
         "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
         "    *) COMPREPLY=($(compgen -W \"$words\" -f -- \"$word\")) ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _cajeta_xpu cajeta-xpu\n";
}

// For between single quotes, in zsh's and fish's descriptions.
std::string described(const std::string& text, std::string_view escaped) {
  std::string out;
  for (const char byte : text) {
    if (byte == '\'') continue;
    if (escaped.find(byte) != std::string_view::npos) out += '\\';
    out += byte;
  }
  return out;
}

std::string zsh_option(const OptionInfo& option) {
  std::string out;
  for (const std::string& name : option.names) {
    out += " \\\n        '" + name;
    // Behind a letter the value may stand at once.
    if (is_value_optional(option)) {
      out += "=-";
    } else if (!option.argument.empty()) {
      out += name.starts_with("--") ? "=" : "+";
    }
    out += "[" + described(option.purpose, "[]:\\") + "]";
    if (!option.argument.empty()) {
      out += (is_value_optional(option) ? "::" : ":") + described(option.argument, "[]:\\") + ":";
      if (!option.values.empty()) out += "(" + joined(option.values) + ")";
      if (option.values.empty() && option.takes_files) out += "_files";
    }
    out += "'";
  }
  return out;
}

std::string zsh(const std::vector<CommandInfo>& commands) {
  std::string out =
      "#compdef cajeta-xpu\n"
      "_cajeta_xpu() {\n"
      "  local -a names\n"
      "  names=(\n";
  for (const CommandInfo& command : commands) {
    out += "    '" + command.name + ":" + described(command.purpose, ":\\") + "'\n";
  }
  out +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command names\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2] behind=$words[(i)--]\n"
      "  if [[ $command = run ]] && (( behind < CURRENT )); then\n"
      "    shift $behind words\n"
      "    (( CURRENT -= behind ))\n"
      "    _normal\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandInfo& command : commands) {
    out += "    " + command.name + ")\n      _arguments -S";
    for (const OptionInfo& option : command.options) {
      if (!option.names.empty()) out += zsh_option(option);
    }
    const std::string words = words_of(command);
    if (command.name == "run") {
      out += " \\\n        '*::program: _normal'";
    } else if (has_positional(command) && (words.empty() || has_file(command))) {
      if (!words.empty()) out += " \\\n        '1:argument:(" + words + ")'";
      out += " \\\n        '*:argument:_files'";
    } else if (!words.empty()) {
      out += " \\\n        '1:argument:(" + words + ")'";
    }
    out += "\n      ;;\n";
  }
  return out +
         "  esac\n"
         "}\n"
         "# In a file of fpath, whatever its name, or sourced.\n"
         "if [[ $zsh_eval_context[-1] = loadautofunc ]]; then\n"
         "  _cajeta_xpu \"$@\"\n"
         "else\n"
         "  compdef _cajeta_xpu cajeta-xpu\n"
         "fi\n";
}

std::string fish_option(const CommandInfo& command, const OptionInfo& option) {
  std::string out = "complete -c cajeta-xpu -n '__cajeta_xpu_is " + command.name + "'";
  for (const std::string& name : option.names) {
    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.values.empty()) out += " -x -a '" + joined(option.values) + "'";
  if (option.values.empty() && !option.argument.empty() && !is_value_optional(option)) {
    out += option.takes_files ? " -r -F" : " -x";
  }
  return out + " -d '" + described(option.purpose, "\\") + "'\n";
}

// The words of the positional argument as the first one, and files where it takes some.
std::string fish_argument(const CommandInfo& command) {
  const std::string words = words_of(command);
  std::string out;
  if (!words.empty()) {
    out += "complete -c cajeta-xpu -n '__cajeta_xpu_is " + command.name + " first' -a '" + words +
           "'\n";
  }
  if (has_file(command) && command.name != "run") {
    out += "complete -c cajeta-xpu -F -n '__cajeta_xpu_is " + command.name +
           (words.empty() ? "" : " later") + "'\n";
  }
  return out;
}

// The first word is the command. What stands behind -- is a command line of its own.
constexpr const char* kFishFunctions = R"(function __cajeta_xpu_is
  set -l words (commandline -opc)
  contains -- -- $words; and return 1
  if test "$argv[1]" = command
    test (count $words) -eq 1
    return
  end
  test (count $words) -ge 2; and test $words[2] = $argv[1]; or return 1
  switch "$argv[2]"
    case first
      test (count $words) -eq 2
    case later
      test (count $words) -gt 2
  end
end
function __cajeta_xpu_runs
  set -l words (commandline -opc)
  test (count $words) -ge 3; and test $words[2] = run; and contains -- -- $words
end
function __cajeta_xpu_program
  set -l words (commandline -opc)
  set -l at (contains -i -- -- $words)
  set -l line
  test $at -lt (count $words); and set line (string escape -- $words[(math $at + 1)..-1])
  complete -C (string join ' ' -- $line (commandline -ct))
end
complete -c cajeta-xpu -f
complete -c cajeta-xpu -n __cajeta_xpu_runs -a '(__cajeta_xpu_program)'
)";

std::string fish(const std::vector<CommandInfo>& commands) {
  std::string out = std::string("# fish completion of cajeta-xpu\n") + kFishFunctions;
  for (const CommandInfo& command : commands) {
    out += "complete -c cajeta-xpu -n '__cajeta_xpu_is command' -a " + command.name + " -d '" +
           described(command.purpose, "\\") + "'\n";
    for (const OptionInfo& option : command.options) {
      if (!option.names.empty()) out += fish_option(command, option);
    }
    out += fish_argument(command);
  }
  return out;
}

}  // namespace

int show_completions(const std::vector<CommandInfo>& commands, const std::string& shell) {
  print(shell == "bash" ? bash(commands) : shell == "zsh" ? zsh(commands) : fish(commands));
  return kOk;
}

}  // namespace cli
