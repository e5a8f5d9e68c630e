// SPDX-License-Identifier: Apache-2.0
// OpenMP target regions as GCC compiles them for nvptx: a wave on a membrane, many steps of several
// regions each, with reductions, atomics, a critical section, nested parallel regions with barriers
// and device functions. Prints results and fails when one differs from the same code on the host.
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSide = 24, kCells = kSide * kSide, kSteps = 30, kBins = 8 };

#pragma omp declare target
static int steps_made;
static int bin_of(float height) {
  const int bin = (int)((height + 1.0f) * (kBins / 2));
  return bin < 0 ? 0 : bin >= kBins ? kBins - 1 : bin;
}
// Recursion needs the soft stack that GCC keeps for every thread.
static int gcd(int a, int b) {
  return b == 0 ? a : gcd(b, a % b);
}
#pragma omp end declare target

static int failures;

static void expect(const char* what, double found, double wanted, double tolerance) {
  printf("%s %a\n", what, found);
  if (fabs(found - wanted) <= tolerance) return;
  printf("%s: %a found, %a expected\n", what, found, wanted);
  ++failures;
}

static void start(float* heights) {
  for (int i = 0; i < kCells; ++i) {
    const int x = i % kSide - kSide / 2, y = i / kSide - kSide / 2;
    heights[i] = x * x + y * y < 16 ? 1.0f - (x * x + y * y) / 16.0f : 0.0f;
  }
}

static float laplace(const float* heights, int x, int y) {
  const int i = y * kSide + x;
  return heights[i - 1] + heights[i + 1] + heights[i - kSide] + heights[i + kSide] -
         4.0f * heights[i];
}
#pragma omp declare target to(laplace)

static double wave_on_device(int bins[kBins]) {
  static float heights[kCells], speeds[kCells];
  double energy = 0;
  start(heights);
#pragma omp target data map(to : heights, speeds) map(tofrom : bins[:kBins])
  for (int step = 0; step < kSteps; ++step) {
    energy = 0;
#pragma omp target teams distribute parallel for collapse(2) num_teams(6)
    for (int y = 1; y < kSide - 1; ++y) {
      for (int x = 1; x < kSide - 1; ++x) speeds[y * kSide + x] += 0.125f * laplace(heights, x, y);
    }
#pragma omp target teams distribute parallel for num_teams(6) map(tofrom : energy) reduction(+ : energy)
    for (int i = 0; i < kCells; ++i) {
      heights[i] += speeds[i];
      energy += (double)heights[i] * heights[i];
    }
#pragma omp target parallel for num_threads(4)
    for (int i = step; i < kCells; i += kSteps) {
#pragma omp atomic
      ++bins[bin_of(heights[i])];
    }
#pragma omp target
    ++steps_made;
  }
  return energy;
}

static double wave_on_host(int bins[kBins]) {
  static float heights[kCells], speeds[kCells];
  double energy = 0;
  start(heights);
  for (int step = 0; step < kSteps; ++step) {
    energy = 0;
    for (int y = 1; y < kSide - 1; ++y) {
      for (int x = 1; x < kSide - 1; ++x) speeds[y * kSide + x] += 0.125f * laplace(heights, x, y);
    }
    for (int i = 0; i < kCells; ++i) {
      heights[i] += speeds[i];
      energy += (double)heights[i] * heights[i];
    }
    for (int i = step; i < kCells; i += kSteps) ++bins[bin_of(heights[i])];
  }
  return energy;
}

static void check_wave(void) {
  int found[kBins] = {0}, wanted[kBins] = {0}, made = 0;
  const double energy = wave_on_device(found);
  expect("energy", energy, wave_on_host(wanted), 1e-3);
#pragma omp target map(from : made)
  made = steps_made;
  expect("steps", made, kSteps, 0);
  int total = 0, moved = 0;
  for (int i = 0; i < kBins; ++i) {
    total += found[i];
    moved += abs(found[i] - wanted[i]);
  }
  expect("cells counted", total, kCells, 0);
  // A height next to the edge of a bin may round to the other side.
  expect("cells in another bin", moved, 0, 4);
}

// Warps meet in barriers of GCC's own, and wait for a lock while others hold it.
static void check_threads(void) {
  int turns = 0, last = 0, sums[16] = {0};
#pragma omp target teams num_teams(3) map(tofrom : turns, last, sums)
  {
    int held[8] = {0};
#pragma omp parallel num_threads(8)
    {
      const int me = omp_get_thread_num();
      for (int round = 0; round < 5; ++round) {
        held[me] += me;
#pragma omp barrier
#pragma omp single
        for (int i = 1; i < 8; ++i) held[0] += held[i];
#pragma omp critical
        {
          const int seen = turns;
          turns = seen + 1;
        }
      }
#pragma omp master
      {
        sums[omp_get_team_num()] = held[0];
#pragma omp atomic
        last += held[0];
      }
    }
  }
  // In round r thread i holds r * i, so 28 r go to the first.
  expect("turns", turns, 3 * 8 * 5, 0);
  expect("sum of teams", last, 3 * 28 * 15, 0);
  expect("sum of a team", sums[2], 28 * 15, 0);
}

static void check_functions(void) {
  int divisors[64] = {0};
  double smallest = 1e9;
#pragma omp target parallel for map(tofrom : divisors) num_threads(8)
  for (int i = 0; i < 64; ++i) divisors[i] = gcd(360, i + 1);
#pragma omp target parallel for simd map(tofrom : smallest) reduction(min : smallest)
  for (int i = 0; i < 500; ++i) smallest = fmin(smallest, fabs(sin(0.1 * i) - 0.5));
  int total = 0, wanted = 0;
  double wanted_smallest = 1e9;
  for (int i = 0; i < 64; ++i) {
    total += divisors[i];
    wanted += gcd(360, i + 1);
  }
  for (int i = 0; i < 500; ++i) {
    wanted_smallest = fmin(wanted_smallest, fabs(sin(0.1 * i) - 0.5));
  }
  expect("divisors", total, wanted, 0);
  expect("smallest", smallest, wanted_smallest, 1e-12);
}

int main(void) {
  int on_host = 1;
#pragma omp target map(tofrom : on_host)
  on_host = omp_is_initial_device();
  printf("runs on %s\n", on_host ? "the host" : "the device");
  if (on_host) return 2;
  check_wave();
  check_threads();
  check_functions();
  return failures == 0 ? 0 : 1;
}
