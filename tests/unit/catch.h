// SPDX-License-Identifier: Apache-2.0
// Catch2, whichever of version 3 and 2 is installed. tests/unit/catch_main.cpp holds main().
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
