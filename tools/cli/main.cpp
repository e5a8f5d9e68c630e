// SPDX-License-Identifier: Apache-2.0
// cajeta-xpu: runs programs with the library, and reads its reports.
#include "tools/cli/arguments.h"

int main(int count, char** arguments) {
  return cli::run_command_line(count, arguments);
}
