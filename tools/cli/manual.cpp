// SPDX-License-Identifier: Apache-2.0
// `man`: the COMMANDS section of cajeta-xpu(1) out of the commands as they are. For the build.
#include "tools/cli/commands.h"
#include "tools/cli/failure.h"
#include "tools/cli/output.h"
#include "tools/cli/roff.h"

namespace cli {
namespace {

std::string option_text(const OptionInfo& option) {
  std::string out = ".TP\n";
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "" : ", ") + ("\\fB" + roff(name) + "\\fR");
  }
  if (!option.argument.empty()) {
    names += (names.empty() ? "" : " ") + ("\\fI" + roff(option.argument) + "\\fR");
  }
  out += names + "\n" + roff(option.purpose) + "\n";
  if (option.values.empty() || !option.names.empty())
    return out;  // an option's argument lists them
  std::string values;
  for (const std::string& value : option.values) values += (values.empty() ? "" : ", ") + value;
  return out + "Values: " + roff(values) + ".\n";
}

}  // namespace

std::string roff(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    if (byte == '-') {
      out += "\\-";
    } else if (byte == '\\') {
      out += "\\e";
    } else if ((byte == '.' || byte == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + byte;
    } else {
      out += byte;
    }
  }
  return out;
}

int show_manual(const std::vector<CommandInfo>& commands) {
  std::string out;
  for (const CommandInfo& command : commands) {
    out += ".SS " + roff(command.name) + "\n" + roff(command.purpose) + "\n.PP\n";
    out += "\\fBcajeta\\-xpu " + roff(command.name) + "\\fR " + roff(command.usage) + "\n";
    for (const OptionInfo& option : command.options) out += option_text(option);
  }
  print(out);
  return kOk;
}

}  // namespace cli
