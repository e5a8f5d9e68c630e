// SPDX-License-Identifier: Apache-2.0
// A program with loggers of its own in spdlog's registry, one of them under the name that softgpu
// gives to its own, and with a level and a pattern for all. Nothing of that may meet softgpu's.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "tests/programs/host/tiny.h"

int main() {
  const auto logger = spdlog::stdout_logger_mt("softgpu");
  spdlog::set_default_logger(logger);
  spdlog::set_pattern("program %l %v");
  spdlog::set_level(spdlog::level::err);
  tiny::start();
  for (int i = 0; i < 100; ++i) tiny::bump(1);
  spdlog::error("result {}", tiny::cell());
  spdlog::info("not shown");
  int count = 0;
  spdlog::apply_all([&count](const std::shared_ptr<spdlog::logger>&) { ++count; });
  std::printf("%d loggers\n", count);
}
