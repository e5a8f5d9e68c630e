// SPDX-License-Identifier: Apache-2.0
// Catch2, compiled once a test program where -Db_pch=true says so (tools/test).
#include "tests/unit/catch.h"
