// SPDX-License-Identifier: Apache-2.0
// OpenACC regions as GCC compiles them for nvptx: two queues that run without waiting, on arrays
// that live on the device, so that many launches follow each other with no other call between. Each
// round joins the queues and sums up. Prints the sums and fails when one differs from the host's.
#include <openacc.h>
#include <stdio.h>

enum { kCells = 256, kRounds = 8, kSteps = 6 };

static float left[kCells], right[kCells], next_left[kCells], next_right[kCells];
#pragma acc declare create(left, right, next_left, next_right)

#pragma acc routine seq
static int at(int i) {
  return (i + kCells) % kCells;
}

static void start(void) {
  for (int i = 0; i < kCells; ++i) {
    left[i] = (float)(i % 7);
    right[i] = (float)(i % 5 - 2);
  }
  // GCC 12 forgets an update directive for variables like these, not the call.
  acc_update_device(left, sizeof left);
  acc_update_device(right, sizeof right);
}

// Dyadic weights and few steps: every sum is exact in any order.
static void step_on_device(int steps) {
  for (int step = 0; step < steps; ++step) {
#pragma acc parallel loop num_gangs(4) vector_length(32) async(1)
    for (int i = 0; i < kCells; ++i) next_left[i] = 0.5f * (left[at(i - 1)] + left[i]);
#pragma acc parallel loop num_gangs(2) vector_length(64) async(2)
    for (int i = 0; i < kCells; ++i) next_right[i] = right[at(i + 1)] - right[i] * 0.25f;
#pragma acc parallel loop num_gangs(4) vector_length(32) async(1)
    for (int i = 0; i < kCells; ++i) left[i] = next_left[i];
#pragma acc parallel loop num_gangs(2) vector_length(64) async(2)
    for (int i = 0; i < kCells; ++i) right[i] = next_right[i];
  }
}

// Brings what one queue made to the other.
static double join_on_device(void) {
  double total = 0;
#pragma acc wait(2) async(1)
#pragma acc parallel loop num_gangs(4) vector_length(32) async(1)
  for (int i = 0; i < kCells; ++i) left[i] = (float)((int)(left[i] + right[i]) % 9);
#pragma acc parallel loop num_gangs(4) vector_length(32) async(1)
  for (int i = 0; i < kCells; ++i) right[i] = (float)((int)right[i] % 5);
#pragma acc parallel loop num_gangs(2) vector_length(32) copy(total) reduction(+ : total) async(1)
  for (int i = 0; i < kCells; ++i) total += left[i] * 3.0 + right[i];
#pragma acc wait(1)
  return total;
}

static double round_on_host(int steps) {
  static float l[kCells], r[kCells], nl[kCells], nr[kCells];
  static int is_started;
  if (!is_started) {
    is_started = 1;
    for (int i = 0; i < kCells; ++i) l[i] = (float)(i % 7), r[i] = (float)(i % 5 - 2);
  }
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < kCells; ++i) nl[i] = 0.5f * (l[at(i - 1)] + l[i]);
    for (int i = 0; i < kCells; ++i) nr[i] = r[at(i + 1)] - r[i] * 0.25f;
    for (int i = 0; i < kCells; ++i) l[i] = nl[i], r[i] = nr[i];
  }
  double total = 0;
  for (int i = 0; i < kCells; ++i) l[i] = (float)((int)(l[i] + r[i]) % 9);
  for (int i = 0; i < kCells; ++i) r[i] = (float)((int)r[i] % 5);
  for (int i = 0; i < kCells; ++i) total += l[i] * 3.0 + r[i];
  return total;
}

int main(void) {
  int on_host = 1, failures = 0;
#pragma acc parallel copyout(on_host)
  on_host = acc_on_device(acc_device_host);
  printf("runs on %s\n", on_host ? "the host" : "the device");
  if (on_host) return 2;
  start();
  for (int round = 0; round < kRounds; ++round) {
    step_on_device(kSteps);
    const double found = join_on_device(), wanted = round_on_host(kSteps);
    printf("round %d %a\n", round, found);
    if (found == wanted) continue;
    printf("round %d: %a found, %a expected\n", round, found, wanted);
    ++failures;
  }
  return failures == 0 ? 0 : 1;
}
