// SPDX-License-Identifier: Apache-2.0
// main() of every unit test program, compiled once.
#define CATCH_CONFIG_MAIN
#include "tests/unit/catch.h"
